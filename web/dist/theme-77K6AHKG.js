"use strict";(()=>{try{let e=localStorage.getItem("cuebook-theme");(e==="light"||e==="dark")&&(document.documentElement.dataset.theme=e)}catch{}document.documentElement.classList.add("js");})();

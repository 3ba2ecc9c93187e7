// Before anything is drawn: the theme that was chosen on this machine, if one was.
try {
  const theme = localStorage.getItem("cuebook-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset["theme"] = theme;
} catch {
  // storage is switched off: the system's theme it is
}
document.documentElement.classList.add("js");

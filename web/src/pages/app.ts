// What every page has: shortcuts, the palette, the theme, times, copy buttons.

import { all } from "../dom";
import { startKeys } from "../keys";
import { sayTimes, startCopying, switchTheme } from "../look";

// loaded when it is first wanted
async function palette(): Promise<void> {
  const { openPalette } = await import("../palette");
  openPalette();
}

startKeys();
startCopying();
sayTimes();
setInterval(() => sayTimes(), 60_000);

for (const button of all("[data-theme-switch]")) button.addEventListener("click", switchTheme);
for (const button of all('[data-open="palette"]')) button.addEventListener("click", () => void palette());
if (/Mac|iPhone|iPad/.test(navigator.userAgent)) {
  for (const key of all(".find kbd")) key.textContent = "⌘K";
}
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    void palette();
  }
});
document.documentElement.dataset["ready"] = "";

// Where a new file goes: said, and checked, while it is typed.

import { all, one } from "../dom";
import { read, t } from "../editor/page";
import { newPath } from "../editor/place";
import { ApiError, api } from "../api";

const form = one<HTMLFormElement>("#new-form");
if (form && read<{ texts: Record<string, string> }>("new")) begin(form);

function begin(form: HTMLFormElement): void {
  const field = (name: string) => form.elements.namedItem(name) as HTMLInputElement;
  const [kind, folder, name] = [field("kind"), field("folder"), field("name")];
  const [said, fault, starters] = [one("#new-path"), one("#new-fault"), one("#new-starters")];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let asked = 0;
  let touched = name.value !== "";
  const look = () => {
    if (starters) starters.hidden = kind.value !== "prompt";
    const path = name.value.trim() === "" ? "" : newPath(kind.value, folder.value, name.value);
    if (said) said.textContent = path;
    clearTimeout(timer);
    asked += 1;
    const mine = asked;
    if (path === "") {
      if (fault) fault.textContent = "";
      return;
    }
    timer = setTimeout(async () => {
      let why = "";
      try {
        await api(`/editor/place?${new URLSearchParams({ path })}`);
      } catch (error) {
        why = error instanceof ApiError ? error.message : String(error);
      }
      // the newest answer counts
      if (mine !== asked || !fault) return;
      fault.textContent = why;
      name.setAttribute("aria-invalid", String(why !== ""));
      if (why === "" && said) said.textContent = t("new_free", { path });
    }, 150);
  };
  for (const input of [kind, folder, name]) input.addEventListener("input", look);
  name.addEventListener("input", () => {
    touched = name.value !== "";
  });
  for (const radio of all<HTMLInputElement>("[name=starter]", form)) {
    radio.addEventListener("change", () => {
      if (!touched) {
        name.value = radio.dataset["name"] ?? "";
        folder.value = radio.dataset["folder"] ?? folder.value;
      }
      look();
    });
  }
  look();
}

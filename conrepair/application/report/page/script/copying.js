"use strict";
// A button beside each command puts it on the clipboard; where the browser refuses, the command is selected.
function copying(command) {
  const code = command.querySelector("code"), words = { ready: "Copy", done: "Copied", selected: "Selected: press Ctrl+C" };
  const button = element("button", { type: "button", class: "copy", "aria-label": `Copy: ${code.textContent}` }, words.ready);
  const say = (text) => { button.textContent = text; setTimeout(() => { button.textContent = words.ready; }, 2000); };
  button.addEventListener("click", () => navigator.clipboard.writeText(code.textContent).then(() => say(words.done), () => {
    getSelection().selectAllChildren(code);
    say(words.selected);
  }));
  command.append(" ", button);
}

document.querySelectorAll(".command").forEach(copying);

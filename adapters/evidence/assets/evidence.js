// Light and dark, as the reader chooses.
const button = document.getElementById("theme");
const dark = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
const tell = () => {
  button.textContent = isDark() ? "Light" : "Dark";
};
button.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  tell();
});
dark.addEventListener("change", tell);
tell();

/* Names for what the theme leaves to the eye: a button is called what it shows, and an arrow by the page that it opens. */
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".search-button-field").forEach((button) => {
    button.setAttribute("aria-label", button.textContent.trim().replace(/\s+/g, " "));
  });
  document.querySelectorAll(".version-switcher__button").forEach((button) => button.removeAttribute("aria-label"));
  document.querySelectorAll(".sphx-glr-thumbcontainer a.internal").forEach((link) => {
    link.setAttribute("aria-label", link.textContent.trim());
  });
  document.querySelectorAll(".bd-docs-nav summary").forEach((arrow) => {
    const link = arrow.closest("li").querySelector("a");
    arrow.setAttribute("aria-label", `Pages below ${link.textContent.trim()}`);
  });
});

/** Keep the files of the survey for when there is no connection: the newest that were seen. */
const FILES = ["./", "index.html", "style.css", "survey.js", "labeldp.js"];

addEventListener("install", (event) => event.waitUntil(caches.open("survey").then((cache) => cache.addAll(FILES))));

addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return; // reports are never kept here
  event.respondWith(fetch(event.request).catch(() => caches.match(event.request)));
});

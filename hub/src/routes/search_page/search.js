// Makes the search page quicker: results as one types, and handles that are copied with one click. The page does all that it
// does without this.
"use strict";

(() => {
  const form = document.querySelector("form.search");
  const WAIT_MILLIS = 200;
  let timer = 0;
  let asking = null;

  const showCopyButtons = () => {
    for (const button of document.querySelectorAll("button.copy")) {
      button.hidden = false;
    }
  };

  // Empty fields say nothing, and a new text begins at the first page.
  const address = () => {
    const parameters = new URLSearchParams();
    for (const [name, value] of new FormData(form)) {
      if (value !== "") {
        parameters.set(name, value);
      }
    }
    return `/search?${parameters}`;
  };

  const ask = async () => {
    asking?.abort();
    asking = new AbortController();
    const url = address();
    try {
      const answer = await fetch(url, { signal: asking.signal, headers: { Accept: "text/html" } });
      // Too many requests, say: what is shown stays, and the form still works.
      if (!answer.headers.get("content-type")?.startsWith("text/html")) {
        return;
      }
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const results = page.getElementById("results");
      if (results) {
        document.getElementById("results").replaceWith(results);
        history.replaceState(null, "", url);
        showCopyButtons();
      }
    } catch (error) {
      if (error.name !== "AbortError") {
        throw error;
      }
    }
  };

  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, WAIT_MILLIS);
  });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) {
      return;
    }
    try {
      await navigator.clipboard.writeText(button.dataset.text);
      button.textContent = "Copied";
    } catch {
      // Not allowed here: select it, so that one key copies it.
      const handle = button.parentElement.querySelector(".handle");
      getSelection().selectAllChildren(handle);
      button.textContent = "Selected";
    }
  });

  showCopyButtons();
})();

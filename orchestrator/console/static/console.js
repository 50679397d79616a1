"use strict";

// A batch is sent as the file itself, with the form's token beside it; without JavaScript, `posology batch` sends it.
for (const form of document.querySelectorAll("form[data-upload]")) {
  const said = form.querySelector("[role=status]");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const file = form.elements.namedItem("file").files[0];
    if (!file) return;
    const headers = { "Content-Type": "application/x-ndjson", "X-Form-Token": form.dataset.token };
    if (file.name.endsWith(".gz")) headers["Content-Encoding"] = "gzip";
    const query = new URLSearchParams();
    for (const name of ["key", "model", "max_cost_usd"]) {
      const field = form.elements.namedItem(name);
      if (field && field.value) query.set(name, field.value);
    }
    said.textContent = "Uploading …";
    try {
      const reply = await fetch(`${form.action}?${query}`, { method: "POST", headers, body: file });
      const found = await reply.json();
      if (reply.ok) location.assign(found.page);
      else said.textContent = found.detail;
    } catch (error) {
      said.textContent = `The upload failed: ${error.message}`;
    }
  });
}

// Exchanges the code of a login link for a cookie and a page key. The code is in the fragment of the
// address: a browser sends that to nobody, and it is taken out of the history before anything else.
// The browser sends the cookie to every server on this host; the key stays with this origin.
const state = document.getElementById("state");
const input = document.getElementById("code");
const code = location.hash.slice(1);
const home = location.search === "?tour" ? "/?tour" : "/";
history.replaceState(null, "", "/login");

async function login(given) {
  state.textContent = "";
  const response = await fetch("/login", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code: given.trim() }),
  });
  if (response.ok) {
    const { page_key } = await response.json();
    try {
      localStorage.setItem("quarterdeck.page-key", page_key);
    } catch {
      state.textContent = "This browser keeps nothing for this page, so nobody can be logged in here.";
      return;
    }
    location.replace(home);
    return;
  }
  const problem = await response.json();
  state.textContent = `${problem.title}. ${problem.detail ?? ""}`;
}

function attempt(given) {
  login(given).catch((error) => { state.textContent = `The hub does not answer: ${error.message}`; });
}

document.getElementById("form").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(input.value);
});
if (code) {
  attempt(code);
}

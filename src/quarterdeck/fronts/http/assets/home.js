// Says whether this browser is logged in.
async function loginState() {
  const key = localStorage.getItem("quarterdeck.page-key");
  const response = await fetch("/api/whoami", { headers: key ? { "X-Quarterdeck-Page-Key": key } : {} });
  if (response.ok) {
    const me = await response.json();
    return `You are logged in as ${me.name} (${me.role}).`;
  }
  return "You are not logged in. Make a login link in a terminal: quarterdeck token --login";
}

loginState()
  .catch((error) => `The hub does not answer: ${error.message}`)
  .then((text) => { document.getElementById("who").textContent = text; });

// Says whether this browser is logged in.
async function loginState() {
  const response = await fetch("/api/whoami");
  if (response.ok) {
    const me = await response.json();
    return `You are logged in as ${me.name} (${me.role}).`;
  }
  return "You are not logged in. Make a login link in a terminal: quarterdeck token --login";
}

loginState()
  .catch((error) => `The hub does not answer: ${error.message}`)
  .then((text) => { document.getElementById("who").textContent = text; });

// The runtime of acpx, driven by a test: `node acpx_runtime.mjs RUNTIME MODES AGENT…`.
//
// Commands come as lines of JSON on stdin, and what happens goes to stdout in the same way. A turn has
// the decisions and forms that its person will give, in their order; without one, a dialogue stays
// open until the command `decide` or the agent ends it. MODES are the kinds of forms that it shows,
// with commas between them. The runtime cannot fork; `fork` does it by the connection that the
// runtime itself is built on.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [runtimePath, modes, ...agent] = process.argv.slice(2);
const { createAcpRuntime, createRuntimeStore } = await import(runtimePath);
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const sessionStore = createRuntimeStore({ stateDir: `${process.cwd()}/acpx-state` });
const runtime = createAcpRuntime({
  cwd: process.cwd(),
  sessionStore,
  agentRegistry: { resolve: () => agent, list: () => ["quarterdeck"] },
  permissionMode: "deny-all",
  elicitationModes: modes.split(",").filter(Boolean),
});
let handle;
let turn;
let decide;

const given = (answers, signal, what) =>
  new Promise((resolve, reject) => {
    const answer = answers.shift();
    if (answer !== undefined) return resolve(answer);
    decide = resolve;
    signal.addEventListener("abort", () => {
      say({ takenBack: what });
      reject(new Error("taken back"));
    });
  });

async function run(command) {
  const decisions = [...(command.decisions ?? [])];
  const forms = [...(command.forms ?? [])];
  turn = runtime.startTurn({
    handle,
    text: command.text,
    mode: "prompt",
    requestId: String(command.id),
    onPermissionRequest: async (request, { signal }) => {
      say({ asked: request.raw });
      return { outcome: await given(decisions, signal, "permission") };
    },
    onElicitation: async (request, { signal }) => {
      say({ form: request });
      return { action: "accept", content: await given(forms, signal, "form") };
    },
  });
  for await (const event of turn.events) say({ event });
  return await turn.result;
}

// Fork a session, say something in the copy, and give its id and what it answered.
async function fork({ session, text }) {
  const sdk = createRequire(runtimePath).resolve("@agentclientprotocol/sdk");
  const { ClientSideConnection, ndJsonStream } = await import(pathToFileURL(sdk).href);
  const child = spawn(agent[0], agent.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  let said = "";
  const client = {
    sessionUpdate: async ({ update }) => {
      if (update.sessionUpdate === "agent_message_chunk") said += update.content.text;
    },
    requestPermission: async () => ({ outcome: { outcome: "cancelled" } }),
  };
  const connection = new ClientSideConnection(() => client, stream);
  try {
    await connection.initialize({ protocolVersion: 1, clientCapabilities: {} });
    const cwd = process.cwd();
    const { sessionId } = await connection.unstable_forkSession({ sessionId: session, cwd });
    await connection.prompt({ sessionId, prompt: [{ type: "text", text }] });
    return { session: sessionId, said };
  } finally {
    child.stdin.end();
    await ended;
  }
}

const commands = {
  fork,
  decide: async ({ outcome }) => decide(outcome),
  ensure: async ({ key, resume }) =>
    (handle = await runtime.ensureSession({
      sessionKey: key,
      agent: "quarterdeck",
      mode: "persistent",
      ...(resume ? { resumeSessionId: resume } : {}),
    })),
  turn: run,
  cancel: async () => await turn.cancel(),
  mode: async ({ value }) => await runtime.setMode({ handle, mode: value }),
  option: async ({ key, value }) => await runtime.setConfigOption({ handle, key, value }),
  status: async () => await runtime.getStatus({ handle }),
  record: async () => await sessionStore.load(handle.acpxRecordId),
  close: async () => await runtime.close({ handle, reason: "the test is over" }),
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  commands[command.do](command)
    .then((done) => say({ id: command.id, done: done ?? null }))
    .catch((error) => say({ id: command.id, error: String(error) }));
}
await runtime.shutdown();

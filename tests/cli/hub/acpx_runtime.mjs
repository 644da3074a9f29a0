// The runtime of acpx, driven by a test: `node acpx_runtime.mjs RUNTIME AGENT…`.
//
// Commands come as lines of JSON on stdin, and what happens goes to stdout in the same way. A turn has
// the decisions and forms that its person will give, in their order; without one, a dialogue stays
// open until the agent takes it back.
import { createInterface } from "node:readline";

const [runtimePath, ...agent] = process.argv.slice(2);
const { createAcpRuntime, createRuntimeStore } = await import(runtimePath);
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const sessionStore = createRuntimeStore({ stateDir: `${process.cwd()}/acpx-state` });
const runtime = createAcpRuntime({
  cwd: process.cwd(),
  sessionStore,
  agentRegistry: { resolve: () => agent, list: () => ["quarterdeck"] },
  permissionMode: "deny-all",
  elicitationModes: ["form"],
});
let handle;
let turn;

const given = (answers, signal, what) =>
  new Promise((resolve, reject) => {
    const answer = answers.shift();
    if (answer !== undefined) return resolve(answer);
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

const commands = {
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

import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, test } from "vitest";
import { ErrorBoundary } from "../src/ui/ErrorBoundary";
import { later } from "../src/ui/later";

(globalThis as Record<string, unknown>).IS_REACT_ACT_ENVIRONMENT = true;

function Shown({ text }: { text: string }) {
  return <p>{text}</p>;
}

async function draw(node: React.ReactNode): Promise<HTMLElement> {
  const place = document.createElement("div");
  await act(async () => createRoot(place).render(node));
  return place;
}

test("what is loaded later is shown as soon as it is there, and at once the next time", async () => {
  let give: (component: typeof Shown) => void = () => undefined;
  let loads = 0;
  const Page = later<{ text: string }>(
    () => {
      loads += 1;
      return new Promise((done) => {
        give = done;
      });
    },
    <p>wait</p>,
  );
  const first = await draw(<Page text="one" />);
  expect(first.textContent).toBe("wait");
  await act(async () => give(Shown));
  expect(first.textContent).toBe("one");
  expect((await draw(<Page text="two" />)).textContent).toBe("two");
  expect(loads).toBe(1);
});

test("what cannot be loaded fails inside of its error boundary, and is loaded again", async () => {
  let fails = true;
  const Page = later<{ text: string }>(async () => {
    if (fails) throw new Error("no such file");
    return Shown;
  });
  const boxed = (
    <ErrorBoundary what="page">
      <Page text="there" />
    </ErrorBoundary>
  );
  expect((await draw(boxed)).textContent).toContain("no such file");
  fails = false;
  expect((await draw(boxed)).textContent).toBe("there");
});

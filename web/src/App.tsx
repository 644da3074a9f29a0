import { CircleCheck, WifiOff } from "lucide-react";
import { type ComponentType, useEffect, useState } from "react";
import { Route, Switch, useLocation, useSearch } from "wouter";
import { Keys } from "./asks/Keys";
import { Sidebar } from "./sessions/Sidebar";
import { Tabs } from "./sessions/Tabs";
import { store, useAppState } from "./state/store";
import { text } from "./text";
import { Banners } from "./ui/Banners";
import { css } from "./ui/css";
import { ErrorBoundary } from "./ui/ErrorBoundary";
import frame from "./ui/frame.module.css";
import { Icon } from "./ui/Icon";
import { later } from "./ui/later";
import { Notifications } from "./ui/Notifications";
import { PageErrors } from "./ui/PageErrors";

// A session's page is much more code than the list: it is loaded beside the list, and not before it.
const importSession = () => import("./session/SessionPage");
const loading = <p className={css.empty.page}>{text.app.loading}</p>;
const pageOf = <Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): ComponentType<Props> => later(() => load().then((module) => module.default), loading);
const SessionPage = later(() => importSession().then((module) => module.SessionPage), loading);
const Inbox = pageOf(() => import("./inbox/Inbox"));
const Usage = pageOf(() => import("./panels/Usage"));
const Policy = pageOf(() => import("./panels/Policy"));
const Loops = pageOf(() => import("./panels/Loops"));
const Schedules = pageOf(() => import("./panels/Schedules"));
const Machines = pageOf(() => import("./panels/Machines"));
const Settings = pageOf(() => import("./panels/Settings"));
const Compare = pageOf(() => import("./panels/Compare"));
const SharedSession = later(() =>
  import("./panels/SharedSession").then((module) => module.default),
);
const Search = pageOf(() => import("./panels/Search"));
const ChangesPage = pageOf(() => import("./changes/ChangesPage"));
const ComparePage = pageOf(() => import("./rewind/ComparePage"));
const Tour = later(() => import("./tour/Tour").then((module) => module.default));

if (location.pathname.startsWith("/s/")) void importSession();
else setTimeout(() => void importSession().catch(() => undefined), 1000); // the next click finds it

/** The web app; or the page of a read-only link, which needs no login and nothing of the rest. */
export function App() {
  if (window.location.pathname === "/share") {
    return <SharedSession />;
  }
  return <WholeApp />;
}

function WholeApp() {
  const loggedOut = useAppState((state) => state.loggedOut);
  const [location] = useLocation();
  useEffect(() => {
    void store.start();
    return () => store.stop();
  }, []);
  if (loggedOut) return <Login />;
  // An error boundary around each: one that fails takes no other with it.
  return (
    <>
      <SkipLinks />
      <Banners />
      <Notifications />
      <PageErrors />
      <Keys />
      <div className={frame.frame} data-place={location === "/" ? "home" : "page"}>
        <ErrorBoundary what={text.app.things.list}>
          <Sidebar />
        </ErrorBoundary>
        <main id={MAIN} tabIndex={-1}>
          <ErrorBoundary what={text.app.things.tabs}>
            <Tabs />
          </ErrorBoundary>
          <ErrorBoundary what={text.app.things.page} raw={location}>
            <Switch>
              <Route path="/s/:id">{({ id }) => <SessionPage id={decodeURIComponent(id)} />}</Route>
              <Route path="/s/:id/:conversation">
                {({ id, conversation }) => (
                  <SessionPage
                    id={decodeURIComponent(id)}
                    conversation={decodeURIComponent(conversation)}
                  />
                )}
              </Route>
              <Route path="/changes/:id">
                {({ id }) => <ChangesPage id={decodeURIComponent(id)} />}
              </Route>
              <Route path="/compare/:one/:other">
                {({ one, other }) => (
                  <ComparePage one={decodeURIComponent(one)} other={decodeURIComponent(other)} />
                )}
              </Route>
              <Route path="/usage" component={Usage} />
              <Route path="/policy" component={Policy} />
              <Route path="/loops" component={Loops} />
              <Route path="/schedules" component={Schedules} />
              <Route path="/machines" component={Machines} />
              <Route path="/settings" component={Settings} />
              <Route path="/search" component={Search} />
              <Route path="/compare" component={Compare} />
              <Route component={Home} />
            </Switch>
          </ErrorBoundary>
        </main>
      </div>
      <TourIfWanted />
    </>
  );
}

/** Home: the questions that wait for an answer. */
function Home() {
  const waiting = useAppState((state) => state.asks.size > 0);
  const listed = useAppState((state) => state.listed);
  const away = useAppState((state) => state.connection === "offline");
  if (waiting) return <Inbox />;
  if (away && !listed) {
    return (
      <div className={css.empty.page}>
        <Icon of={WifiOff} size={36} />
        <h1>{text.app.offline}</h1>
        <p>{text.app.offlineHint}</p>
      </div>
    );
  }
  return (
    <div className={css.empty.page}>
      {listed && <Icon of={CircleCheck} size={36} />}
      <h1>{text.app.inbox}</h1>
      <p>{listed ? text.app.nothingWaits : text.app.loading}</p>
      {listed && <p className={css.texts.muted}>{text.app.nothingWaitsHint}</p>}
    </div>
  );
}

/** The tour is wanted by the address, and stays until it is closed. */
function TourIfWanted() {
  const wanted = new URLSearchParams(useSearch()).has("tour");
  const [open, setOpen] = useState(wanted);
  useEffect(() => {
    if (wanted) setOpen(true);
  }, [wanted]);
  if (!open) return null;
  return <Tour onClose={() => setOpen(false)} />;
}

const MAIN = "main";
const TO_PAGE: [string, string] = [`#${MAIN}`, text.app.skipToPage];
const TO_COMPOSER: [string, string] = ["[data-composer] textarea", text.app.skipToComposer];

/** The first things that Tab reaches: ways past the list. */
function SkipLinks() {
  const [location] = useLocation();
  const skips = location.startsWith("/s/") ? [TO_PAGE, TO_COMPOSER] : [TO_PAGE];
  return (
    <nav className={frame.skipLinks} data-part="skip" aria-label={text.app.skip}>
      {skips.map(([to, words]) => (
        <a
          key={to}
          href={`#${MAIN}`}
          onClick={(event) => {
            event.preventDefault();
            document.querySelector<HTMLElement>(to)?.focus();
          }}
        >
          {words}
        </a>
      ))}
    </nav>
  );
}

function Login() {
  return (
    <main className={css.empty.page}>
      <img src="/icon.svg" width={48} height={48} alt="" />
      <h1>{text.app.loggedOut}</h1>
      <p>
        {text.app.loginBefore} <code>{text.app.loginCommand}</code> {text.app.loginAfter}
      </p>
      <p>
        <a className={css.button.button} href="/login">
          {text.app.enterCode}
        </a>
      </p>
    </main>
  );
}

import { lazy, Suspense, useEffect } from "react";
import { Route, Switch, useLocation } from "wouter";
import { Keys } from "./asks/Keys";
import { Sidebar } from "./sessions/Sidebar";
import { Tabs } from "./sessions/Tabs";
import { store, useAppState } from "./state/store";
import { ErrorBoundary } from "./ui/ErrorBoundary";
import { Notifications } from "./ui/Notifications";
import { PageErrors } from "./ui/PageErrors";

// A session's page is much more code than the list: it is loaded beside the list, and not before it.
const importSession = () => import("./session/SessionPage");
const SessionPage = lazy(() => importSession().then((module) => ({ default: module.SessionPage })));
const Inbox = lazy(() => import("./inbox/Inbox"));
const Usage = lazy(() => import("./panels/Usage"));
const Policy = lazy(() => import("./panels/Policy"));
const Loops = lazy(() => import("./panels/Loops"));
const Schedules = lazy(() => import("./panels/Schedules"));
const Machines = lazy(() => import("./panels/Machines"));
const Settings = lazy(() => import("./panels/Settings"));
const Search = lazy(() => import("./panels/Search"));

if (location.pathname.startsWith("/s/")) void importSession();
else setTimeout(() => void importSession().catch(() => undefined), 1000); // the next click finds it

export function App() {
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
      <Offline />
      <Notifications />
      <PageErrors />
      <Keys />
      <div className="frame" data-place={location === "/" ? "home" : "page"}>
        <ErrorBoundary what="list of sessions">
          <Sidebar />
        </ErrorBoundary>
        <main id={MAIN} tabIndex={-1}>
          <ErrorBoundary what="tab bar">
            <Tabs />
          </ErrorBoundary>
          <ErrorBoundary what="page" raw={location}>
            <Suspense fallback={null}>
              <Switch>
                <Route path="/s/:id">
                  {({ id }) => <SessionPage id={decodeURIComponent(id)} />}
                </Route>
                <Route path="/s/:id/:conversation">
                  {({ id, conversation }) => (
                    <SessionPage
                      id={decodeURIComponent(id)}
                      conversation={decodeURIComponent(conversation)}
                    />
                  )}
                </Route>
                <Route path="/usage" component={Usage} />
                <Route path="/policy" component={Policy} />
                <Route path="/loops" component={Loops} />
                <Route path="/schedules" component={Schedules} />
                <Route path="/machines" component={Machines} />
                <Route path="/settings" component={Settings} />
                <Route path="/search" component={Search} />
                <Route component={Home} />
              </Switch>
            </Suspense>
          </ErrorBoundary>
        </main>
      </div>
    </>
  );
}

/** Home: the questions that wait for an answer. */
function Home() {
  const waiting = useAppState((state) => state.asks.size > 0);
  const listed = useAppState((state) => state.listed);
  if (waiting) return <Inbox />;
  return (
    <div className="empty-state">
      <h1>Inbox</h1>
      <p>{listed ? "No agent is waiting for you. Choose a session, or start one." : "Loading …"}</p>
    </div>
  );
}

const MAIN = "main";
const SKIPS: [string, string][] = [
  [`#${MAIN}`, "Skip to the page"],
  ["[data-composer] textarea", "Skip to the composer"],
];

/** The first things that Tab reaches: ways past the list. */
function SkipLinks() {
  const [location] = useLocation();
  const skips = location.startsWith("/s/") ? SKIPS : SKIPS.slice(0, 1);
  return (
    <nav className="skip-links" aria-label="Skip">
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
    <main className="empty-state">
      <h1>You are not logged in</h1>
      <p>
        Run <code>quarterdeck token --login</code> on the hub's machine, and open the link that it
        prints in this browser.
      </p>
      <p>
        <a href="/login">Enter a login code</a>
      </p>
    </main>
  );
}

function Offline() {
  const connection = useAppState((state) => state.connection);
  if (connection === "online" || connection === "connecting") return null;
  return (
    <p className="offline" role="status">
      {connection === "refused"
        ? "Your access was revoked or has expired. Log in again."
        : "The hub cannot be reached. Agents keep working; this page reconnects automatically."}
    </p>
  );
}

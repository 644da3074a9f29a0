import { lazy, Suspense, useEffect } from "react";
import { Route, Switch, useLocation } from "wouter";
import { Keys } from "./asks/Keys";
import { SessionPage } from "./session/SessionPage";
import { Sidebar } from "./sessions/Sidebar";
import { Tabs } from "./sessions/Tabs";
import { store, useAppState } from "./state/store";
import { ErrorBoundary } from "./ui/ErrorBoundary";
import { Notifications } from "./ui/Notifications";
import { PageErrors } from "./ui/PageErrors";

const Usage = lazy(() => import("./panels/Usage"));
const Policy = lazy(() => import("./panels/Policy"));
const Machines = lazy(() => import("./panels/Machines"));
const Settings = lazy(() => import("./panels/Settings"));
const Search = lazy(() => import("./panels/Search"));

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
      <Offline />
      <Notifications />
      <PageErrors />
      <Keys />
      <div className="frame" data-place={location === "/" ? "home" : "page"}>
        <ErrorBoundary what="list of sessions">
          <Sidebar />
        </ErrorBoundary>
        <main>
          <ErrorBoundary what="tab bar">
            <Tabs />
          </ErrorBoundary>
          <ErrorBoundary what="page" raw={location}>
            <Suspense fallback={null}>
              <Switch>
                <Route path="/s/:id">
                  {({ id }) => <SessionPage id={decodeURIComponent(id)} />}
                </Route>
                <Route path="/usage" component={Usage} />
                <Route path="/policy" component={Policy} />
                <Route path="/machines" component={Machines} />
                <Route path="/settings" component={Settings} />
                <Route path="/search" component={Search} />
                <Route>
                  <div className="empty-state">
                    <h1>Quarterdeck</h1>
                    <p>Choose a session, or start one. Agents waiting for you are listed first.</p>
                  </div>
                </Route>
              </Switch>
            </Suspense>
          </ErrorBoundary>
        </main>
      </div>
    </>
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

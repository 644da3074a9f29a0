import { lazy, Suspense, useEffect } from "react";
import { Route, Switch, useLocation } from "wouter";
import { Keys } from "./asks/Keys";
import { Sidebar } from "./fleet/Sidebar";
import { Tabs } from "./fleet/Tabs";
import { SessionPage } from "./session/SessionPage";
import { store, useDeck } from "./state/store";
import { Boundary } from "./ui/Boundary";
import { Faults } from "./ui/Faults";
import { Notices } from "./ui/Notices";

const Usage = lazy(() => import("./panels/Usage"));
const Policy = lazy(() => import("./panels/Policy"));
const Machines = lazy(() => import("./panels/Machines"));
const Settings = lazy(() => import("./panels/Settings"));
const Search = lazy(() => import("./panels/Search"));

export function App() {
  const stranger = useDeck((deck) => deck.stranger);
  const [location] = useLocation();
  useEffect(() => {
    void store.start();
    return () => store.stop();
  }, []);
  if (stranger) return <Stranger />;
  // Each of these by itself: what cannot be shown takes nothing else with it.
  return (
    <>
      <Offline />
      <Notices />
      <Faults />
      <Keys />
      <div className="frame" data-place={location === "/" ? "home" : "page"}>
        <Boundary what="list of sessions">
          <Sidebar />
        </Boundary>
        <main>
          <Boundary what="row of tabs">
            <Tabs />
          </Boundary>
          <Boundary what="page" raw={location}>
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
                    <p>
                      Choose a session, or begin one. Who waits for you stands at the top of the
                      list.
                    </p>
                  </div>
                </Route>
              </Switch>
            </Suspense>
          </Boundary>
        </main>
      </div>
    </>
  );
}

function Stranger() {
  return (
    <main className="empty-state">
      <h1>You are not logged in</h1>
      <p>
        Make a login link in a terminal on the hub's machine, and open it here:{" "}
        <code>quarterdeck token --login</code>
      </p>
      <p>
        <a href="/login">I have a code</a>
      </p>
    </main>
  );
}

function Offline() {
  const connection = useDeck((deck) => deck.connection);
  if (connection === "online" || connection === "connecting") return null;
  return (
    <p className="offline" role="status">
      {connection === "refused"
        ? "Your access was taken back, or has run out. Log in again."
        : "The hub cannot be reached. Agents work on; this page comes back by itself."}
    </p>
  );
}

/** The frame around all pages: where one can go, what is on its way, colours, help. */

import { type ReactNode, useEffect, useState } from "react";
import { ApiError } from "../api/client";
import { Boundary } from "../base/boundary";
import { useKeys, shortcutsOfPage } from "../base/keys";
import { useAsked, usePath, go } from "../base/router";
import { useStore } from "../base/store";
import { type Theme, chooseTheme, chosenTheme } from "../base/theme";
import { Dialog, Empty, Icon, type IconName, Link, Said, Trouble } from "../base/ui";
import { DocsPage } from "../docs/page";
import { GalleryPage } from "../gallery/page";
import { ItemDialog } from "../item/dialog";
import { LabelsPage } from "../labels/page";
import { MapPage } from "../map/page";
import { ReviewPage } from "../review/page";
import { SearchPage } from "../search/page";
import { StatusPage } from "../status/page";
import { JOB_NAMES, share, underWay, useJobs, watchJobs } from "../status/jobs";
import { TrainingPage } from "../training/page";
import { mayWrite } from "../decisions/may";
import { useCollection } from "./collection";
import { NoToken, TokenButton, TokenDialog } from "./token";
import { Waiting } from "./waiting";

interface Place {
  path: string;
  name: string;
  icon: IconName;
}

const PLACES: Place[] = [
  { path: "/", name: "Gallery", icon: "gallery" },
  { path: "/review", name: "Review", icon: "review" },
  { path: "/search", name: "Search", icon: "search" },
  { path: "/labels", name: "Labels", icon: "tag" },
  { path: "/map", name: "Map", icon: "map" },
  { path: "/training", name: "Training", icon: "training" },
  { path: "/status", name: "Status", icon: "status" },
  { path: "/docs", name: "API", icon: "api" },
];

export function App(): ReactNode {
  const path = usePath();
  const asked = useAsked();
  const collection = useCollection();
  const [helping, setHelping] = useState(false);
  const place = PLACES.find((p) => p.path === path);
  useEffect(() => {
    document.title = `${place?.name ?? "No such page"} · wsabie`;
  }, [place]);
  useHelpKey(() => setHelping(true));
  const reads = collection.value?.role === "read";
  useEffect(() => mayWrite.set(!reads), [reads]);
  const item = Number(asked.get("item"));
  const noToken = collection.value === null && collection.error instanceof ApiError && collection.error.status === 401;
  const onlyModel = collection.error instanceof ApiError && collection.error.status === 404;
  return (
    <div className="app">
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <header className="top">
        <span className="brand">wsabie</span>
        <nav aria-label="Pages">
          {PLACES.map((p) => (
            <Link key={p.path} to={p.path} current={p.path === path}>
              <Icon name={p.icon} />
              <span>{p.name}</span>
            </Link>
          ))}
        </nav>
        <div className="top-right">
          <Working />
          {reads && <span className="quiet" title="You may look at everything here, and change nothing">Read only</span>}
          <TokenButton />
          <Waiting />
          <ThemeSwitch />
          <button type="button" className="plain" aria-label="Keys" title="Keys (?)" onClick={() => setHelping(true)}>
            ?
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        <Boundary key={path}>
          {path === "/docs" ? (
            <DocsPage />
          ) : noToken ? (
            <NoToken />
          ) : onlyModel ? (
            <NoCollection />
          ) : path === "/" ? (
            <GalleryPage facts={collection.value} />
          ) : path === "/review" ? (
            <ReviewPage facts={collection.value} />
          ) : path === "/search" ? (
            <SearchPage />
          ) : path === "/labels" ? (
            <LabelsPage />
          ) : path === "/training" ? (
            <TrainingPage />
          ) : path === "/map" ? (
            <MapPage facts={collection.value} />
          ) : path === "/status" ? (
            <StatusPage collection={collection} />
          ) : (
            <NoSuchPage path={path} />
          )}
        </Boundary>
        {collection.error && !onlyModel && !noToken && path !== "/status" && collection.value === null && (
          <Trouble error={collection.error} again={collection.again} />
        )}
      </main>
      {item > 0 && <ItemDialog id={item} />}
      {helping && <Help onClose={() => setHelping(false)} />}
      <TokenDialog />
      <Said />
    </div>
  );
}

/** ? shows the keys, and g with a letter goes to a page. */
function useHelpKey(help: () => void): void {
  useEffect(() => {
    let going = 0;
    const heard = (event: KeyboardEvent): void => {
      const typing = event.target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      const to = { g: "/", r: "/review", s: "/search", l: "/labels", m: "/map", n: "/training", t: "/status" }[event.key];
      if (event.key === "?") help();
      else if (to && Date.now() - going < 1000) go(to);
      else {
        going = event.key === "g" ? Date.now() : 0;
        return;
      }
      going = 0;
      event.preventDefault();
      event.stopImmediatePropagation();
    };
    window.addEventListener("keydown", heard, true);
    return () => window.removeEventListener("keydown", heard, true);
  }, [help]);
}

function Help({ onClose }: { onClose: () => void }): ReactNode {
  const ofPage = useStore(shortcutsOfPage);
  useKeys([{ keys: ["?"], told: "Close", run: onClose }], "dialog");
  return (
    <Dialog title="Keys" className="small" onClose={onClose}>
      <dl className="keys">
        {ofPage.map((s) => (
          <div key={s.told}>
            <dt>
              <kbd>{s.shown ?? s.keys.map((key) => (key === " " ? "Space" : key)).join(" ")}</kbd>
            </dt>
            <dd>{s.told}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>g</kbd> then <kbd>g r s l m n t</kbd>
          </dt>
          <dd>Gallery, Review, Search, Labels, Map, Training, Status</dd>
        </div>
        <div>
          <dt>
            <kbd>?</kbd>
          </dt>
          <dd>These keys</dd>
        </div>
      </dl>
    </Dialog>
  );
}

function ThemeSwitch(): ReactNode {
  const [theme, setTheme] = useState<Theme>(chosenTheme);
  const next = { system: "light", light: "dark", dark: "system" } as const;
  const icons = { system: "system", light: "sun", dark: "moon" } as const;
  const told = { system: "as the system", light: "light", dark: "dark" }[theme];
  return (
    <button
      type="button"
      className="plain"
      aria-label={`Colours: ${told}`}
      title={`Colours: ${told}`}
      onClick={() => {
        chooseTheme(next[theme]);
        setTheme(next[theme]);
      }}
    >
      <Icon name={icons[theme]} />
    </button>
  );
}

function Working(): ReactNode {
  useEffect(watchJobs, []);
  const job = useJobs().find(underWay);
  if (!job) return null;
  const done = share(job);
  const [to, name] = job.kind === "train" || job.kind === "compare" ? ["/training", "Training"] : ["/status", "Status"];
  return (
    <Link to={to} className="working" label={`${JOB_NAMES[job.kind]}: see ${name}`}>
      <span className="wide">{JOB_NAMES[job.kind]}</span>
      <progress aria-label={JOB_NAMES[job.kind]} {...(done === null ? {} : { value: done })} />
    </Link>
  );
}

function NoSuchPage({ path }: { path: string }): ReactNode {
  return (
    <Empty title="There is no such page">
      <p>
        Nothing is at <code>{path}</code>.
      </p>
      <p className="actions">
        <button type="button" onClick={() => history.back()} disabled={history.length < 2}>
          <Icon name="back" /> Back
        </button>
        <Link to="/" className="button">
          To the gallery
        </Link>
      </p>
    </Empty>
  );
}

function NoCollection(): ReactNode {
  return (
    <Empty title="A model alone is served here">
      <p>
        It has no collection to show. Ask it over the <Link to="/docs">API</Link>, or start the service on a collection.
      </p>
    </Empty>
  );
}

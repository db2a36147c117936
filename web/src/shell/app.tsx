/** The frame around all pages: navigation, running job, theme, help. */

import { type ReactNode, useEffect, useState } from "react";
import { ApiError } from "../api/client";
import { ErrorBoundary } from "../base/error-boundary";
import { useShortcuts, pageShortcuts } from "../base/shortcuts";
import { useSearchParams, usePath, navigate } from "../base/router";
import { useStore } from "../base/store";
import { type Theme, applyTheme, readTheme } from "../base/theme";
import { Dialog, EmptyState, Icon, type IconName, Link, Notification, ErrorMessage } from "../base/components";
import { DocsPage } from "../docs/page";
import { GalleryPage } from "../gallery/page";
import { areGuesses } from "../item/guesses";
import { ItemDialog } from "../item/dialog";
import { LabelsPage } from "../labels/page";
import { MapPage } from "../map/page";
import { ReviewPage } from "../review/page";
import { SearchPage } from "../search/page";
import { StatusPage } from "../status/page";
import { JOB_NAMES, getProgress, isActive, useJobs, watchJobs } from "../status/jobs";
import { TrainingPage } from "../training/page";
import { writePermission } from "../decisions/write-permission";
import { useCollection } from "./collection";
import { NoToken, TokenButton, TokenDialog } from "./token";
import { PendingDecisions } from "./pending-decisions";

interface PageLink {
  path: string;
  name: string;
  icon: IconName;
}

const PAGE_LINKS: PageLink[] = [
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
  const params = useSearchParams();
  const collection = useCollection();
  const [showsHelp, setShowsHelp] = useState(false);
  const pageLink = PAGE_LINKS.find((p) => p.path === path);
  useEffect(() => {
    document.title = `${pageLink?.name ?? "Unknown page"} · wsabie`;
  }, [pageLink]);
  useGlobalShortcuts(() => setShowsHelp(true));
  const isReadOnly = collection.value?.role === "read";
  useEffect(() => writePermission.set(!isReadOnly), [isReadOnly]);
  const isZeroShot = collection.value?.model?.method === "zero-shot";
  useEffect(() => areGuesses.set(isZeroShot), [isZeroShot]);
  const item = Number(params.get("item"));
  const needsToken = collection.value === null && collection.error instanceof ApiError && collection.error.status === 401;
  const isModelOnly = collection.error instanceof ApiError && collection.error.status === 404;
  return (
    <div className="app">
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <header className="top">
        <span className="brand">wsabie</span>
        <nav aria-label="Pages">
          {PAGE_LINKS.map((p) => (
            <Link key={p.path} address={p.path} current={p.path === path}>
              <Icon name={p.icon} />
              <span>{p.name}</span>
            </Link>
          ))}
        </nav>
        <div className="top-right">
          <JobIndicator />
          {isReadOnly && <span className="quiet" title="You may look at everything here, and change nothing">Read only</span>}
          <TokenButton />
          <PendingDecisions />
          <ThemeSwitch />
          <button type="button" className="plain" aria-label="Keys" title="Keys (?)" onClick={() => setShowsHelp(true)}>
            ?
          </button>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        <ErrorBoundary key={path}>
          {path === "/docs" ? (
            <DocsPage />
          ) : needsToken ? (
            <NoToken />
          ) : isModelOnly ? (
            <NoCollection />
          ) : path === "/" ? (
            <GalleryPage facts={collection.value} />
          ) : path === "/review" ? (
            <ReviewPage facts={collection.value} />
          ) : path === "/search" ? (
            <SearchPage facts={collection.value} />
          ) : path === "/labels" ? (
            <LabelsPage />
          ) : path === "/training" ? (
            <TrainingPage />
          ) : path === "/map" ? (
            <MapPage facts={collection.value} />
          ) : path === "/status" ? (
            <StatusPage collection={collection} />
          ) : (
            <UnknownPage path={path} />
          )}
        </ErrorBoundary>
        {collection.error && !isModelOnly && !needsToken && path !== "/status" && collection.value === null && (
          <ErrorMessage error={collection.error} onRetry={collection.reload} />
        )}
      </main>
      {item > 0 && <ItemDialog id={item} />}
      {showsHelp && <HelpDialog onClose={() => setShowsHelp(false)} />}
      <TokenDialog />
      <Notification />
    </div>
  );
}

/** Register global shortcuts: ? shows the keys, g with a letter opens a page. */
function useGlobalShortcuts(help: () => void): void {
  useEffect(() => {
    let prefixTime = 0;
    const handleKey = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof HTMLElement && /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      const address = { g: "/", r: "/review", s: "/search", l: "/labels", m: "/map", n: "/training", t: "/status" }[event.key];
      if (event.key === "?") help();
      else if (address && Date.now() - prefixTime < 1000) navigate(address);
      else {
        prefixTime = event.key === "g" ? Date.now() : 0;
        return;
      }
      prefixTime = 0;
      event.preventDefault();
      event.stopImmediatePropagation();
    };
    window.addEventListener("keydown", handleKey, true);
    return () => window.removeEventListener("keydown", handleKey, true);
  }, [help]);
}

function HelpDialog({ onClose }: { onClose: () => void }): ReactNode {
  const shortcuts = useStore(pageShortcuts);
  useShortcuts([{ keys: ["?"], description: "Close", run: onClose }], "dialog");
  return (
    <Dialog title="Keys" className="small" onClose={onClose}>
      <dl className="keys">
        {shortcuts.map((s) => (
          <div key={s.description}>
            <dt>
              <kbd>{s.display ?? s.keys.map((key) => (key === " " ? "Space" : key)).join(" ")}</kbd>
            </dt>
            <dd>{s.description}</dd>
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
  const [theme, setTheme] = useState<Theme>(readTheme);
  const next = { system: "light", light: "dark", dark: "system" } as const;
  const icons = { system: "system", light: "sun", dark: "moon" } as const;
  const title = { system: "as the system", light: "light", dark: "dark" }[theme];
  return (
    <button
      type="button"
      className="plain"
      aria-label={`Colours: ${title}`}
      title={`Colours: ${title}`}
      onClick={() => {
        applyTheme(next[theme]);
        setTheme(next[theme]);
      }}
    >
      <Icon name={icons[theme]} />
    </button>
  );
}

function JobIndicator(): ReactNode {
  useEffect(watchJobs, []);
  const job = useJobs().find(isActive);
  if (!job) return null;
  const progress = getProgress(job);
  const [address, name] = job.kind === "train" || job.kind === "compare" ? ["/training", "Training"] : ["/status", "Status"];
  return (
    <Link address={address} className="job-indicator" label={`${JOB_NAMES[job.kind]}: see ${name}`}>
      <span className="wide">{JOB_NAMES[job.kind]}</span>
      <progress aria-label={JOB_NAMES[job.kind]} {...(progress === null ? {} : { value: progress })} />
    </Link>
  );
}

function UnknownPage({ path }: { path: string }): ReactNode {
  return (
    <EmptyState title="Unknown page">
      <p>
        Nothing is at <code>{path}</code>.
      </p>
      <p className="actions">
        <button type="button" onClick={() => history.back()} disabled={history.length < 2}>
          <Icon name="back" /> Back
        </button>
        <Link address="/" className="button">
          To the gallery
        </Link>
      </p>
    </EmptyState>
  );
}

function NoCollection(): ReactNode {
  return (
    <EmptyState title="A model alone is served here">
      <p>
        It has no collection to show. Ask it over the <Link address="/docs">API</Link>, or start the service on a collection.
      </p>
    </EmptyState>
  );
}

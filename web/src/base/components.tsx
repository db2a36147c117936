/** Shared components. */

import { type MouseEvent, type ReactNode, useLayoutEffect, useRef } from "react";
import { navigate } from "./router";
import { notification } from "./notifications";
import { useStore } from "./store";

const ICON_PATHS = {
  gallery: "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z",
  review: "M4 12l5 5L20 6",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5L20 20",
  training: "M4 4v16h16M7 15c3-7 6-9 12-9",
  map: "M5 17h.01M8 8h.01M12 13h.01M16 6h.01M19 14h.01M15 19h.01M9 12h.01M18 9.5h.01M5 5h.01M10 18h.01",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  expand: "M4 9V4h5M15 4h5v5M20 15v5h-5M9 20H4v-5",
  lasso: "M12 5c5 0 8 2 8 5s-3 5-8 5-8-2-8-5 3-5 8-5zM8 14.5c-2 1-2 4 0 4.500s2 2-1 2.500",
  list: "M4 6h16M4 12h16M4 18h16",
  status: "M4 19h16M7 19v-6M12 19V5M17 19v-9",
  api: "M8 7l-5 5 5 5M16 7l5 5-5 5",
  accept: "M5 12.5l4.5 4.5L19 7",
  reject: "M6 6l12 12M18 6L6 18",
  undo: "M9 7L4 12l5 5M4 12h10a6 6 0 0 1 6 6",
  next: "M9 5l7 7-7 7",
  back: "M15 5l-7 7 7 7",
  close: "M6 6l12 12M18 6L6 18",
  filter: "M4 6h16M7 12h10M10 18h4",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M5 19l2-2M17 7l2-2",
  moon: "M20 14.5A8.5 8.5 0 0 1 9.5 4a8.5 8.5 0 1 0 10.5 10.5z",
  system: "M3 5h18v12H3zM9 21h6M12 17v4",
  tag: "M4 4h8l8 8-8 8-8-8zM8.5 8.5h.01",
  box: "M5 5h3M11 5h2M16 5h3v3M19 11v2M19 16v3h-3M13 19h-2M8 19H5v-3M5 13v-2M5 8V5",
  heat: "M12 3c1 4 5 5 5 10a5 5 0 0 1-10 0c0-2 1-3 2-4 0 2 1 3 2 3 0-3-1-5 1-9z",
  picture: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15.5 9.5h.01",
} as const;
export type IconName = keyof typeof ICON_PATHS;

export function Icon({ name }: { name: IconName }): ReactNode {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={ICON_PATHS[name]} />
    </svg>
  );
}

interface LinkProps {
  address: string;
  className?: string;
  current?: boolean;
  label?: string;
  children: ReactNode;
}

export function Link({ address, className, current, label, children }: LinkProps): ReactNode {
  const handleClick = (event: MouseEvent): void => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    navigate(address);
  };
  return (
    <a href={address} className={className} aria-current={current ? "page" : undefined} aria-label={label} onClick={handleClick}>
      {children}
    </a>
  );
}

interface DialogProps {
  title: string;
  onClose: () => void;
  className?: string;
  children: ReactNode;
}

/** Modal dialog; the browser traps the focus, closes it with Escape, and restores the focus. */
export function Dialog({ title, onClose, className = "", children }: DialogProps): ReactNode {
  const ref = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    return () => dialog?.close(); // a dialog that is only removed does not restore the focus
  }, []);
  return (
    <dialog
      ref={ref}
      className={`dialog ${className}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === ref.current) onClose();
      }}
    >
      <div className="dialog-body">
        <header className="dialog-head">
          <h2>{title}</h2>
          <button type="button" className="plain" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </header>
        {children}
      </div>
      <Notification />
    </dialog>
  );
}

/** Current notification. A dialog has its own, because the page below it is covered and not read out. */
export function Notification(): ReactNode {
  const current = useStore(notification);
  return (
    <div className="notification" role="status">
      {current && <p key={current.time}>{current.text}</p>}
    </div>
  );
}

export function ErrorMessage({ error, onRetry }: { error: Error; onRetry?: () => void }): ReactNode {
  return (
    <div className="error-message" role="alert">
      <p>{error.message}</p>
      {onRetry && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function EmptyState({ title, children }: { title: string; children?: ReactNode }): ReactNode {
  return (
    <div className="empty-state">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** Bar for a probability. */
export function Bar({ value }: { value: number }): ReactNode {
  return (
    <span className="bar" aria-hidden="true">
      <span style={{ width: `${Math.round(value * 100)}%` }} />
    </span>
  );
}

export function Key({ children }: { children: ReactNode }): ReactNode {
  return <kbd>{children}</kbd>;
}

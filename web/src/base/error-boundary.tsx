/** Error boundary of a page: the frame around it stays usable. */

import { Component, type ReactNode } from "react";
import { ErrorMessage } from "./components";

export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    const pageError = new Error(`This page could not be shown (${error.message}). Your decisions are kept.`);
    return (
      <div>
        <ErrorMessage error={pageError} onRetry={() => location.reload()} />
      </div>
    );
  }
}

/** Where a page fails to be shown, the frame around it stays, and another page can be chosen. */

import { Component, type ReactNode } from "react";
import { Trouble } from "./ui";

export class Boundary extends Component<{ children: ReactNode }, { failed: Error | null }> {
  override state: { failed: Error | null } = { failed: null };

  static getDerivedStateFromError(failed: Error): { failed: Error } {
    return { failed };
  }

  override render(): ReactNode {
    const { failed } = this.state;
    if (failed === null) return this.props.children;
    const told = new Error(`This page could not be shown (${failed.message}). What was decided is kept.`);
    return (
      <div>
        <Trouble error={told} again={() => location.reload()} />
      </div>
    );
  }
}

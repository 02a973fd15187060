// The types of the package need those of a browser, which the agent does not have.
declare module '@xterm/addon-unicode11/lib/addon-unicode11.mjs' {
  export class Unicode11Addon {
    activate(terminal: unknown): void
    dispose(): void
  }
}

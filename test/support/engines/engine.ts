// What tests can do with an engine, whichever it is.

export type Engine = {
  /** The Unix socket of the engine's API. */
  socket: string
  /** Environment variables with which a coordinator finds the engine. */
  env: Record<string, string>
  /** A directory that every user may enter, which is removed. */
  dir: string
  /** Runs the engine's own command, such as docker, and returns its output. */
  command(args: readonly string[], input?: string): string
  /** Runs a program in the namespaces of the engine, and returns its output. */
  runInside(command: readonly string[]): string
  /** Kills the engine with SIGKILL. Its containers may continue to run. */
  kill(): Promise<void>
  /** Starts the engine that was killed. */
  start(): Promise<void>
  /** Ends the engine and its containers, and removes everything. */
  close(): Promise<void>
}

/** An engine whose images come from a registry that the test can stop. */
export type ImageEngine = Engine & {
  registry: { kill(): Promise<void>; start(): Promise<void>; startFaulty(): Promise<void> }
}

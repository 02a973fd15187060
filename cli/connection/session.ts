// The context of a command: a client for the coordinator, and the signal that Ctrl-C aborts.

import { DEFAULT_DATA_PARENT } from '../project-directory.ts'
import { type Client, createClient } from './client.ts'
import { type CoordinatorConfig, findCoordinator } from './find-coordinator.ts'

export type Session = {
  client: Client
  /** Where the requests go, and where the credentials came from. */
  coordinator: CoordinatorConfig
  signal: AbortSignal
  /**
   * Runs `cleanup` before the process exits because the reader of stdout or stderr has closed the pipe. Returns a function
   * that removes it.
   */
  onClosedPipe(cleanup: () => Promise<void>): () => void
  /**
   * Calls `handler` at each Ctrl-C (SIGINT), and the signal is not aborted. Returns a function that removes it: then the
   * next Ctrl-C aborts the signal.
   */
  onInterrupt(handler: () => void): () => void
}

/** What a session registers for events of the process. */
export type ProcessHandlers = Pick<Session, 'onClosedPipe' | 'onInterrupt'>

/** Sends no request. @throws CliError when no coordinator or no API key is found */
export function openSession(signal: AbortSignal, handlers: ProcessHandlers = NO_HANDLERS): Session {
  const coordinator = findCoordinator(process.env, process.cwd(), DEFAULT_DATA_PARENT)
  return { client: createClient(coordinator, signal), coordinator, signal, ...handlers }
}

const NO_HANDLERS: ProcessHandlers = {
  onClosedPipe: () => () => undefined,
  onInterrupt: () => () => undefined,
}

/**
 * Opens a session and runs a command's action with it. --help opens no session, so it needs no coordinator. The action
 * returns the exit code, or undefined for 0.
 */
export type RunAction = (action: (session: Session) => Promise<number | undefined>) => Promise<void>

/** Runs the action of a command that works without a coordinator. The action returns the exit code, or undefined for 0. */
export type RunLocalAction = (action: (signal: AbortSignal) => Promise<number | undefined>) => Promise<void>

// What each command starts from: a client for the coordinator found, and the signal that Ctrl-C raises.
import { type Client, createClient } from './client.ts'
import { locate, PROJECT } from './locate.ts'

export type Session = {
  client: Client
  signal: AbortSignal
}

/** Throws Failure when no coordinator or key is found; asks nobody anything yet. */
export function openSession(signal: AbortSignal): Session {
  return { client: createClient(locate(process.env, process.cwd(), PROJECT), signal), signal }
}

/** Opened by a command when it runs, so that --help needs no coordinator. Answers with the exit code, or nothing. */
export type Run = (action: (session: Session) => Promise<number | undefined>) => Promise<void>

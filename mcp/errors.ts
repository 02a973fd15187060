// Errors of tools: the message of the API, and what to do next, for a model that corrects itself.
import {
  AuthenticationError,
  BoxwoodError,
  PermissionError,
  RateLimitError,
  UnavailableError,
} from '../client/http/errors.ts'
import { cleanLine } from './text/clean.ts'

/** An error of this server. */
export class ToolError extends Error {
  override readonly name = 'ToolError'
  readonly next: string

  constructor(message: string, next: string) {
    super(message)
    this.next = next
  }
}

/** What to do after the codes of the API whose message does not say it. */
const NEXT: Readonly<Record<string, string>> = {
  no_such_box: 'Call list_boxes for the names of the boxes.',
  not_found: 'Check the name, the path or the id: list_boxes and list_files show what exists.',
  file_not_found: 'Call list_files on the directory above it.',
  process_not_found: 'Check processId: it is in the answer of run_command, and belongs to one box.',
  idempotency_key_reused:
    'This requestId was used for another request. Use a new one, or repeat the first request unchanged.',
  name_taken: 'Use another name, or the box that has it.',
  is_a_directory: 'Call list_files for its entries.',
  policy_denied: 'A policy of the workspace refuses this. Do not work around it: ask the user.',
  provision_failed: 'Call list_boxes with its name for the events of the box, and report them to the user.',
  timeout: 'It is not known whether the request had an effect. Check with list_boxes.',
}

function getNext(error: BoxwoodError): string {
  const known = NEXT[error.code]
  if (known !== undefined) return known
  if (error instanceof AuthenticationError)
    return 'The API key of this server is not valid any more. Ask the user to sign in with `box login`, or to run `box mcp install` again.'
  if (error instanceof PermissionError)
    return 'The API key of this server does not allow this. Do not work around it: ask the user.'
  if (error instanceof RateLimitError)
    return `Repeat the call ${error.retryAfterMs === null ? 'later' : `in ${Math.ceil(error.retryAfterMs / 1000)} s`}.`
  if (error instanceof UnavailableError)
    return 'Repeat the call once. A command or box with a requestId is not started twice. If it fails again, ask the user whether the coordinator runs.'
  return 'Correct the arguments, and call the tool again.'
}

/** @returns the result of a tool */
export function toErrorResult(error: unknown) {
  const lines =
    error instanceof BoxwoodError
      ? [`Error ${cleanLine(error.code, 60)}: ${cleanLine(error.message)}`, getNext(error)]
      : error instanceof ToolError
        ? [`Error: ${cleanLine(error.message)}`, error.next]
        : [`Error: ${cleanLine(error instanceof Error ? error.message : String(error))}`]
  return { content: [{ type: 'text' as const, text: lines.join('\n') }], isError: true }
}

// Runs a command on a box in the mode that the options of box exec select.

import type { Session } from '../connection/session.ts'
import type { CommandResult } from '../output/exit-codes.ts'
import { printInteractiveHint } from './interactive-hint.ts'
import { type ExecOptions, toExecRequest } from './request.ts'
import { runAttached } from './run-attached.ts'
import { checkTerminalOptions, runInTerminal } from './run-in-terminal.ts'
import { runSync } from './run-sync.ts'
import { startDetached } from './start-detached.ts'

/** @throws CliError before a request is sent, when the options exclude each other */
export function checkExecOptions(options: ExecOptions): void {
  if (options.tty) checkTerminalOptions(options)
}

export function runCommand(
  session: Session,
  name: string,
  args: string[],
  options: ExecOptions,
): Promise<CommandResult> {
  const request = toExecRequest(args, options)
  if (options.tty) return runInTerminal(session, name, request)
  if (options.detach) return startDetached(session, name, request, options)
  const isInputLost = process.stdin.isTTY && process.stderr.isTTY && options.stdin && !options.interactive
  if (isInputLost) printInteractiveHint(name, args)
  return options.json ? runSync(session, name, request) : runAttached(session, name, request, options)
}

// Messages about runs, and the exit code of a run that has ended.
import { constants } from 'node:os'
import type { Run } from '../../shared/api/prompts.ts'
import { boxCommand } from '../command-name.ts'
import { CliError, EXIT, signalExitCode } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { sanitizeText } from './terminal-text.ts'

export const INTERRUPTED_EXIT_CODE = signalExitCode(constants.signals.SIGINT)

/** 0 for a run that is done. @param isErrorPrinted the error of the run has been printed. @throws CliError otherwise */
export function toRunExitCode(run: Run, boxName: string, isErrorPrinted: boolean): number {
  if (run.status === 'done') return EXIT.ok
  const error = sanitizeText(run.error ?? '').trim()
  const reason = error === '' || isErrorPrinted ? '.' : `: ${error}`
  if (run.status === 'interrupted') {
    const message = /^The run was interrupted/.test(error) ? error : `the run was interrupted${reason}`
    throw new CliError(INTERRUPTED_EXIT_CODE, message, { code: 'run_interrupted' })
  }
  const hint = isErrorPrinted ? ` \`box prompts ${boxName} ${sanitize(run.id)}\` shows the run.` : ''
  throw new CliError(EXIT.failed, `the run failed${reason}${hint}`, { code: 'run_failed' })
}

export const formatRunHint = (boxName: string, runId: string): string =>
  `Follow it:    ${boxCommand()} prompts ${boxName} ${runId} --follow\n` +
  `Interrupt it: ${boxCommand()} interrupt ${boxName} ${runId}`

export const noSuchRunMessage = (boxName: string, runId: string): string =>
  `No such run on ${boxName}: '${sanitize(runId)}'. Run \`box prompts ${boxName}\` to list runs.`

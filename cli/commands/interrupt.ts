// box interrupt: interrupts runs of coding agents, and removes prompts from the queue.
import { type Command, Option } from 'commander'
import type { PromptInterrupted, PromptsInterrupted } from '../../shared/api/prompts.ts'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import { AMBIGUOUS_ID } from '../arguments/unique-prefix.ts'
import type { EdgeClient } from '../connection/client.ts'
import type { RunAction } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printStderr, sanitize } from '../output/print.ts'
import { printError } from '../output/print-error.ts'
import { replaceNotFoundMessage } from '../processes/process-messages.ts'
import { createRunFinder, findConversationId } from '../prompts/find-run.ts'
import { noSuchRunMessage } from '../prompts/messages.ts'

type Options = JsonOption & { conversation?: string }

export function addInterruptCommand(program: Command, runAction: RunAction): void {
  program
    .command('interrupt')
    .summary('interrupt runs of coding agents on a box')
    .description(
      'Interrupts runs of coding agents with all processes that they have started, and removes prompts from the queue. ' +
        'Without a run: all runs in progress and the whole queue. Returns when the runs have ended. Interrupting a run that ' +
        'has ended is not an error.',
    )
    .argument('<name>', "the box's name or id")
    .argument('[run...]', 'ids from `box prompts`, or their first characters (default: all)')
    .addOption(new Option('--conversation <id>', 'all runs and queued prompts of this conversation'))
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box interrupt fig
  box interrupt fig run_8b49
  box interrupt fig --conversation cv_8b49
  box prompts fig -q --filter status=queued | xargs -r box interrupt fig

With several ids, each one is tried; the exit code is that of the first failure.`,
    )
    .action((name: string, typed: string[], options: Options) => {
      if (typed.length > 0 && options.conversation !== undefined)
        throw new CliError(EXIT.usage, '--conversation cannot be combined with a run.')
      return runAction(async ({ client }) => {
        const edge = await client.createEdgeClient(name)
        return typed.length > 0 ? interruptRuns(edge, typed, options) : interruptAll(edge, options)
      })
    })
}

async function interruptRuns(edge: EdgeClient, typed: string[], { json }: Options): Promise<number> {
  let exitCode: number = EXIT.ok
  const findId = createRunFinder(edge)
  for (const word of typed) {
    try {
      const id = await findId(word)
      const response = edge.requestJson<PromptInterrupted>(
        'POST',
        `/prompts/${encodeURIComponent(id)}/interrupt`,
      )
      const result = await replaceNotFoundMessage(response, noSuchRunMessage(edge.boxName, id))
      if (json) printJson(result)
      else printStderr(`${id}: ${describeResult(result)}`)
    } catch (error) {
      if (!(error instanceof CliError) || typed.length === 1 || !concernsOneRun(error)) throw error
      printError(error)
      exitCode ||= error.exitCode
    }
  }
  return exitCode
}

/** Other errors would occur again for the next id. */
const concernsOneRun = ({ code }: CliError): boolean => code === 'not_found' || code === AMBIGUOUS_ID

function describeResult({ dequeued, wasRunning, signal }: PromptInterrupted): string {
  if (dequeued) return 'removed from the queue'
  return wasRunning ? formatInterrupted(signal) : 'already ended'
}

const formatInterrupted = (signal: string | null): string =>
  signal === null ? 'interrupted' : `interrupted (SIG${sanitize(signal)})`

async function interruptAll(edge: EdgeClient, { conversation, json }: Options): Promise<number> {
  const query =
    conversation === undefined
      ? ''
      : `?${new URLSearchParams({ conversation: await findConversationId(edge, conversation) })}`
  const result = await edge.requestJson<PromptsInterrupted>('POST', `/prompts/interrupt${query}`)
  const { interrupted, dequeued } = result
  if (json) printJson(result)
  else {
    for (const id of dequeued) printStderr(`${sanitize(id)}: removed from the queue`)
    for (const { id, signal } of interrupted) printStderr(`${sanitize(id)}: ${formatInterrupted(signal)}`)
    if (interrupted.length + dequeued.length === 0) printStderr(`No runs in progress on ${edge.boxName}.`)
  }
  return EXIT.ok
}

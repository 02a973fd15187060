// box prompts: lists the runs of coding agents on a box, shows one run, or follows it.
import { type Command, Option } from 'commander'
import type { PromptList, PromptStatus, QueuedPrompt, Run } from '../../shared/api/prompts.ts'
import type { EdgeClient } from '../connection/client.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { addListOptions, getFormat, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { print, printJson } from '../output/print.ts'
import { printNewest } from '../processes/find-process.ts'
import { ALL_PROMPTS, loadAllPrompts } from '../prompts/all-prompts.ts'
import { checkRun } from '../prompts/check-run.ts'
import { createRunFinder, findConversationId, getNewestRun, loadPrompts } from '../prompts/find-run.ts'
import { noSuchRunMessage } from '../prompts/messages.ts'
import { formatRunDetails } from '../prompts/run-details.ts'
import { createRunList, toLoadedRuns } from '../prompts/run-list.ts'

type Options = ListOptions & { all?: boolean; conversation?: string; follow?: boolean; reasoning?: boolean }

export function addPromptsCommand(program: Command, runAction: RunAction): void {
  addListOptions(
    program
      .command('prompts')
      .summary('list or follow the runs of coding agents on a box, or list those of all boxes')
      .description(
        'Lists the prompts that were sent to coding agents on a box, newest first: those in the queue, the runs in progress, ' +
          'and those that have ended. With the id of a run, shows the run with its whole prompt and its standard error output. ' +
          'With -f, prints the answer of the run from its start until it ends. With --all, lists the prompts of all running boxes.',
      )
      .argument('[name]', "the box's name or id; omitted with --all")
      .argument('[run]', 'the id of a run, or its first characters')
      .addOption(
        new Option('-a, --all', 'list the prompts of all running boxes').conflicts([
          'follow',
          'conversation',
        ]),
      )
      .addOption(
        new Option(
          '-f, --follow',
          'follow the run (default: the newest run), as `box prompt` does',
        ).conflicts(['filter', 'watch', 'conversation']),
      )
      .option('--reasoning', 'with -f: also print the reasoning of the model')
      .option('--conversation <id>', 'list only runs of this conversation'),
    'the ids',
    ALL_PROMPTS.filters,
  )
    .addHelpText(
      'after',
      `
Examples:
  box prompts fig
  box prompts fig --watch
  box prompts --all --filter status=running
  box prompts fig run_8b49
  box prompts fig run_8b49 --follow
  box prompts fig -q --filter status=queued | xargs -r box interrupt fig

--all asks each running box for its prompts. Boxes that are not running, and those that do not respond within 10 seconds, are
named on stderr. --filter box=TEXT is for --all.

Exit codes with -f are those of \`box prompt\`. After Ctrl-C the run continues.`,
    )
    .action((name: string | undefined, run: string | undefined, options: Options) =>
      runAction((session) => {
        if (options.all) return listAll(session, name, options)
        if (name === undefined)
          throw new CliError(EXIT.usage, 'Name a box, or use --all for the prompts of all running boxes.')
        if (options.follow) return follow(session, name, run, options)
        if (run === undefined) return list(session, name, options)
        return show(session, name, run, options)
      }),
    )
}

async function listAll(
  { client, signal }: Session,
  name: string | undefined,
  options: Options,
): Promise<number> {
  if (name !== undefined)
    throw new CliError(EXIT.usage, '--all is for all boxes. Omit the name, or use --filter box=NAME.')
  return printList(ALL_PROMPTS, () => loadAllPrompts(client, signal), options, signal)
}

async function list({ client, signal }: Session, name: string, options: Options): Promise<number> {
  if (options.filter?.has('box')) throw new CliError(EXIT.usage, '--filter box= is for --all.')
  const edge = await client.createEdgeClient(name)
  const conversation =
    options.conversation === undefined ? null : await findConversationId(edge, options.conversation)
  const query = conversation === null ? '' : `?${new URLSearchParams({ conversation })}`
  const load = async () => toLoadedRuns(await edge.requestJson<PromptList>('GET', `/prompts${query}`))
  return printList(createRunList(edge.boxName), load, options, signal)
}

async function show({ client }: Session, name: string, typed: string, options: Options): Promise<undefined> {
  if (options.watch || options.filter !== undefined || options.conversation !== undefined)
    throw new CliError(EXIT.usage, '--watch, --filter and --conversation are for the list. Omit the run.')
  const edge = await client.createEdgeClient(name)
  const status = await loadRun(edge, await createRunFinder(edge)(typed))
  const format = getFormat(options)
  if (format === 'json') printJson(status)
  else print(format === 'name' ? status.run.id : formatRunDetails(status, Date.now()))
}

/** @throws CliError also for a prompt in the queue, which has no run yet */
async function loadRun(edge: EdgeClient, id: string): Promise<PromptStatus> {
  const found = await findPrompt(edge, id)
  if ('run' in found) return found
  const message = `${id} has not started: its position in the queue is ${found.queued.position}.`
  throw new CliError(EXIT.notFound, message, { code: 'not_found' })
}

async function findPrompt(
  edge: EdgeClient,
  id: string,
): Promise<PromptStatus | { queued: QueuedPrompt; active: Run | null }> {
  try {
    const status = await edge.requestJson<PromptStatus>('GET', `/prompts/${encodeURIComponent(id)}`)
    checkRun(status.run)
    return status
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'not_found' || edge.hostname === null) throw error
    const list = await loadPrompts(edge)
    const queued = list.queued.find((prompt) => prompt.id === id)
    if (queued !== undefined) return { queued, active: list.active }
    throw new CliError(EXIT.notFound, noSuchRunMessage(edge.boxName, id), { code: 'not_found', cause: error })
  }
}

async function follow(
  session: Session,
  name: string,
  typed: string | undefined,
  options: Options,
): Promise<number> {
  const { followRun } = await import('../prompts/follow-run.ts')
  const edge = await session.client.createEdgeClient(name)
  const { quiet = false, reasoning = false } = options
  const printing = { json: getFormat(options) === 'json', quiet, reasoning }
  if (typed !== undefined)
    return followRun(session, edge, await findPrompt(edge, await createRunFinder(edge)(typed)), printing)
  const run = await getNewestRun(edge)
  printNewest('run', run.id, run.prompt)
  return followRun(session, edge, { run }, printing)
}

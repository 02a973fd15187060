// box agents: lists the agents of the boxes with their versions, and changes the rollout of new builds.
import { type Command, Option } from 'commander'
import type {
  Agent,
  AgentList,
  PatchRolloutRequest,
  Rollout,
  RolloutResponse,
} from '../../shared/api/agents.ts'
import { AGENT_STATES } from '../../shared/field-values.ts'
import {
  createIntegerParser,
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import type { RunAction, Session } from '../connection/session.ts'
import type { List } from '../lists/list.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printStderr } from '../output/print.ts'

const AGENTS: List<Agent> = {
  columns: [
    { header: 'NAME', cell: ({ hostname }) => hostname },
    { header: 'VERSION', cell: ({ version }) => version ?? '-' },
    { header: 'STATE', cell: ({ state }) => state },
    { header: 'TARGET', cell: ({ targetBuild }) => targetBuild ?? '-', isWide: true },
    { header: 'ID', cell: ({ boxId }) => boxId, isWide: true },
    { header: 'DETAIL', cell: ({ detail }) => detail ?? '' },
  ],
  getId: ({ boxId }) => boxId,
  getName: ({ hostname }) => hostname,
  filters: {
    name: { get: ({ hostname }) => hostname },
    version: { get: ({ version }) => version },
    state: { get: ({ state }) => state, values: AGENT_STATES },
  },
  getEmptyMessage: (isFiltered) => (isFiltered ? 'No matching agents.' : 'No boxes.'),
}

type RolloutOptions = JsonOption & QuietOption & { share?: number; pause?: true; resume?: true }

export function addAgentsCommand(program: Command, runAction: RunAction): void {
  const agents = program
    .command('agents')
    .summary('show the versions of the agents, and roll out new builds')
    .description(
      'Lists the agents of the boxes with their versions. After an upgrade of the coordinator, agents get its build by ' +
        'themselves, as far as the rollout allows it.',
    )
    // An option after `rollout` belongs to `rollout`.
    .enablePositionalOptions()
    .helpCommand(false)
  addListOptions(agents, 'the names of the boxes', AGENTS.filters)
    .addHelpText(
      'after',
      `
Examples:
  box agents
  box agents --filter state=failed
  box agents rollout --share 20
  box agents rollout --pause

These are Boxwood's own agents. A coding agent needs a key, which need not be on
the box:
  box secrets set ANTHROPIC_API_KEY
  box mount fig ANTHROPIC_API_KEY
  box prompt fig "fix the failing test"`,
    )
    .action((options: ListOptions) =>
      runAction(({ client, signal }) => {
        const load = async () => {
          const { agents: rows, rollout } = await client.request<AgentList>('GET', '/agents')
          const toJson = (shown: readonly Agent[]) => ({ rollout, agents: shown })
          return { rows, toJson, note: describeHold(rollout) }
        }
        return printList(AGENTS, load, options, signal)
      }),
    )
  agents
    .command('rollout')
    .summary('set which boxes get new builds, or pause the upgrades')
    .description(
      'Sets which boxes get new builds of the agent. An agent that has a build keeps it. For owners.',
    )
    .option(
      '--share <percent>',
      'the share of the boxes that get new builds: 0 to 100',
      createIntegerParser('--share', { min: 0, max: 100 }),
    )
    .addOption(new Option('--pause', 'no agent gets another build').conflicts('resume'))
    .addOption(
      new Option('--resume', 'continue, and also offer builds again that have failed on a box').conflicts(
        'pause',
      ),
    )
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box agents rollout --share 20
  box agents rollout --share 100 --resume`,
    )
    .action((options: RolloutOptions) => runAction((session) => changeRollout(session, options)))
}

const describeRollout = ({ share, paused }: Rollout): string =>
  `${share} % of the boxes get new builds${paused ? '; the rollout is paused' : ''}.`

const describeHold = (rollout: Rollout): string | null =>
  rollout.paused || rollout.share < 100 ? describeRollout(rollout) : null

async function changeRollout({ client }: Session, options: RolloutOptions): Promise<undefined> {
  const { share, pause, resume, json, quiet } = options
  if (share === undefined && !pause && !resume)
    throw new CliError(EXIT.usage, 'Add --share, --pause or --resume. `box agents` shows the rollout.')
  const request: PatchRolloutRequest = {
    ...(share !== undefined && { share }),
    ...((pause || resume) && { paused: pause === true }),
  }
  const response = await client.request<RolloutResponse>('PATCH', '/agents/rollout', request)
  if (json) printJson(response)
  else if (!quiet) printStderr(describeRollout(response.rollout))
}

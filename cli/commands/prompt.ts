// box prompt: sends a prompt to a coding agent on a box, and prints its answer.
import { type Command, Option } from 'commander'
import type { PromptQueued, PromptStarted } from '../../shared/api/prompts.ts'
import { PROVIDERS, REASONING_EFFORTS } from '../../shared/field-values.ts'
import {
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { printIfInterrupted } from '../exec/request.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { print, printJson, printMessage, printStderr, sanitize } from '../output/print.ts'
import { PROVIDER_VARIABLE } from '../prompts/default-provider.ts'
import { formatRunHint } from '../prompts/messages.ts'
import { readPrompt } from '../prompts/prompt-text.ts'
import type { RequestOptions } from '../prompts/send-prompt.ts'

type Options = RequestOptions & JsonOption & QuietOption & { detach?: boolean; reasoning?: boolean }

export function addPromptCommand(program: Command, runAction: RunAction): void {
  program
    .command('prompt')
    .summary('send a prompt to a coding agent on a box')
    .description(
      'Sends a prompt to a coding agent on a box, and prints its answer on stdout and its tool calls on stderr until the ' +
        'run ends. The run continues on the box when the connection is lost. Wakes a suspended box.',
    )
    .argument('<name>', "the box's name or id")
    .argument('[text...]', 'the prompt; several words are joined; - or no text reads it from stdin')
    .addOption(
      new Option(
        '-p, --provider <provider>',
        `the coding agent (default: that of the continued conversation, else ${PROVIDER_VARIABLE}, else claude)`,
      ).choices(PROVIDERS),
    )
    .option(
      '-m, --model <model>',
      'a model of the coding agent; amazon-bedrock/, openrouter/ and deepseek/ before it select a backend',
    )
    .addOption(new Option('--effort <effort>', 'how much the model reasons').choices(REASONING_EFFORTS))
    .option(
      '-w, --cwd <directory>',
      'working directory of a new conversation: absolute, or relative to the home directory (default)',
    )
    .addOption(
      new Option('-c, --continue', 'continue the most recent conversation').conflicts([
        'conversation',
        'new',
      ]),
    )
    .addOption(
      new Option('--conversation <id>', 'continue this conversation of `box conversations`').conflicts('new'),
    )
    .option('--new', 'start a conversation, also while other runs are in progress')
    .option('--queue', 'wait while a run is in progress, and start after it')
    .option('--auto', 'let the coding agent use all tools without asking; pi always does')
    .option('-d, --detach', 'print the id of the run and return')
    .option('--reasoning', 'also print the reasoning of the model')
    .addOption(createQuietOption())
    .addOption(createJsonOption('print the run, each event, and the ended run as one JSON object per line'))
    .addHelpText(
      'after',
      `
Examples:
  box prompt fig "fix the failing test" --auto
  box prompt -c fig "now update the changelog"
  box prompt -p codex -m gpt-5.1 -w src fig "explain main.c"
  box prompt fig - <task.md
  box prompt fig "write a haiku" >haiku.txt
  ID=$(box prompt -d fig "port it to Rust") && box prompts fig $ID -f
  box prompt --json fig "list the TODOs" | jq -r 'select(.type == "text").text'

The coding agent needs a key or a sign-in. A key that is not on the box:
  box secrets set ANTHROPIC_API_KEY && box mount fig ANTHROPIC_API_KEY
See \`box docs prompts\`. A prompt that starts with a hyphen needs -- before it.

On a terminal, Ctrl-C asks whether to interrupt the run; a second Ctrl-C interrupts it. Without a terminal, Ctrl-C
interrupts it. Ctrl-\\ detaches: the run continues, as with -d, and after SIGTERM and SIGHUP.

Exit codes:
  0    the run is done; with -d: it has started or is queued; also after detaching
  1    the run has failed, or the prompt was refused
  130  the run was interrupted, or the prompt was removed from the queue`,
    )
    .action((name: string, words: string[], options: Options) =>
      runAction((session) => prompt(session, name, words, options)),
    )
}

async function prompt(session: Session, name: string, words: string[], options: Options): Promise<number> {
  const text = await readPrompt(words, name, process.stdin)
  // Imported here: the other commands do not need these modules.
  const [{ sendPrompt }, { followOwnRun }] = await Promise.all([
    import('../prompts/send-prompt.ts'),
    import('../prompts/follow-run.ts'),
  ])
  const edge = await session.client.createEdgeClient(name)
  const uncertainStart = `The run may have started anyway: check with \`box prompts ${sanitize(name)}\`.`
  const response = await printIfInterrupted(session, `interrupted. ${uncertainStart}`, () =>
    sendPrompt(session, edge, text, options, options.json || options.quiet ? 'none' : 'terminal'),
  ).catch((error) => {
    if (!(error instanceof CliError) || error.exitCode !== EXIT.unreachable) throw error
    throw new CliError(error.exitCode, `${error.message} ${uncertainStart}`, { cause: error })
  })
  if (!options.detach) return followOwnRun(session, edge, response, options)
  printDetachedStart(edge.boxName, response, options)
  return EXIT.ok
}

function printDetachedStart(
  boxName: string,
  response: PromptStarted | PromptQueued,
  { json, quiet }: Options,
): void {
  if (json) {
    printJson(response)
    return
  }
  const isQueued = response.type === 'prompt.queued'
  const { id } = isQueued ? response.queued : response.run
  print(sanitize(id))
  if (quiet) return
  if (isQueued) printMessage(`queued: position ${response.queued.position}.`)
  if (process.stdout.isTTY) printStderr(formatRunHint(boxName, id))
}

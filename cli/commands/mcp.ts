// box mcp: serves boxes as tools to a host of models, by the Model Context Protocol.
import { type Command, Option } from 'commander'
import { createNumberParser } from '../arguments/options.ts'
import type { RunAction } from '../connection/session.ts'
import type { ServeOptions } from '../mcp/serve.ts'

/** In seconds. The time limit of hosts is 60. */
const MAX_WAIT = { min: 0.1, max: 45 }

export function addMcpCommand(program: Command, runAction: RunAction): void {
  const mcp = program
    .command('mcp')
    .summary('serve boxes as tools to a coding agent, by the Model Context Protocol')
    .description(
      'Serves tools for boxes on standard input and output, by the Model Context Protocol. A host such as Claude Code starts this command. The tools are ' +
        'those that the API key allows; the options narrow them further.',
    )
    .option('--read-only', 'only tools that change nothing')
    .option('--box <name>', 'only this box; can be repeated', (name: string, names: string[] = []) => [
      ...names,
      name,
    ])
    .option('--no-create', 'no tool that creates boxes')
    .option('--allow-delete', 'a tool may delete boxes')
    .option('--allow-public', 'a tool may share ports with people who are no members')
    .addOption(
      new Option(
        '--max-wait <seconds>',
        'how long a call waits for a command at most. Default: 45',
      ).argParser(createNumberParser('--max-wait', MAX_WAIT)),
    )
    // An option after a subcommand belongs to the subcommand.
    .enablePositionalOptions()
    .helpCommand(false)
  mcp
    .addHelpText(
      'after',
      `
Examples:
  claude mcp add boxwood -- box mcp
  box mcp --read-only
  box mcp --box fig --no-create

\`box docs mcp\` has the tools, and the configuration of other hosts.`,
    )
    .action((options: ServeOptions) =>
      runAction(async (session) => {
        const { serve } = await import('../mcp/serve.ts')
        return serve(session, options)
      }),
    )
}

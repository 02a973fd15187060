// A real coding agent with a fake model server and a home directory of its own.
import type { Provider } from '../../../../agent/prompts/providers/types.ts'
import { createCliHome } from '../../../support/coding-agents/create-cli-home.ts'
import { installCodingAgents } from '../../../support/coding-agents/install-coding-agents.ts'
import { userTexts } from '../../../support/model-server/model-request.ts'
import { startModelServer } from '../../../support/model-server/model-server.ts'
import { type CliOptions, runCli, startCli } from './start-cli.ts'

const agents = await installCodingAgents()
/** Why the tests cannot run the coding agents; false: they are installed. */
export const { skip } = agents

type Options = Partial<Omit<CliOptions, 'agents' | 'cli' | 'prompt'>>

/** @param addedText matches the texts that the coding agent adds to the messages of the user */
export async function setUpCli(
  t: { teardown(callback: () => unknown): void },
  provider: Provider,
  { addedText = /^$/ }: { addedText?: RegExp } = {},
) {
  const models = await startModelServer(t)
  const cli = createCliHome(t, provider.name, models)
  return {
    models,
    cli,
    start: (prompt: string, options: Options = {}) =>
      startCli(t, provider, { agents, cli, prompt, ...options }),
    run: (prompt: string, options: Options = {}) => runCli(t, provider, { agents, cli, prompt, ...options }),
    /** The texts that the user wrote, in the last request to the model. */
    lastTexts: () =>
      models.scripted
        .slice(-1)
        .flatMap(userTexts)
        .filter((text) => !addedText.test(text)),
  }
}

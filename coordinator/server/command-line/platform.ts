// boxwood platform: the platforms for which machines can get an agent.
import { Argument, type Command } from 'commander'
import { AGENT_PLATFORMS, type AgentPlatform } from '../../../shared/agent-bundle.ts'
import { addPlatform } from '../../agents/bundles/add-platform.ts'
import { listPlatforms } from '../../agents/bundles/platforms.ts'
import { PROJECT_DIR } from '../../base/project-directory.ts'
import { readConfig } from './read-config.ts'

export function addPlatformCommand(program: Command, signal: AbortSignal): void {
  const command = program
    .command('platform')
    .summary('list or add platforms of machines')
    .description('The platforms for which machines can download an agent from this coordinator.')
  command
    .command('ls', { isDefault: true })
    .summary('list the platforms')
    .description('Lists the platforms for which the coordinator has an agent.')
    .action(() => {
      const { dataDir } = readConfig()
      process.stdout.write(`${listPlatforms({ projectRoot: PROJECT_DIR, dataDir }).join('\n')}\n`)
    })
  command
    .command('add')
    .summary('add a platform')
    .description(
      'Downloads Node for the platform with npm into the data directory. A running coordinator uses it at once.',
    )
    .addArgument(new Argument('<platform>', AGENT_PLATFORMS.join(' or ')).choices(AGENT_PLATFORMS))
    .action(async (platform: AgentPlatform) => {
      const { dataDir } = readConfig()
      const isAdded = await addPlatform(platform, { projectRoot: PROJECT_DIR, dataDir, signal })
      process.stdout.write(
        isAdded ? `Added ${platform}.\n` : `The coordinator has an agent for ${platform} already.\n`,
      )
    })
}

// box repos: lists the git repositories of a box, and updates them.

import type { Command } from 'commander'
import type { BoxRepo } from '../../shared/api/environments.ts'
import { formatCount } from '../../shared/format-count.ts'
import {
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import { boxCommand } from '../command-name.ts'
import type { RunAction } from '../connection/session.ts'
import { BOX_REPOS } from '../environments/environment-list.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { printJson, printStderr } from '../output/print.ts'

type Repos = { repos: BoxRepo[] }

export function addReposCommand(program: Command, runAction: RunAction): void {
  const repos = program
    .command('repos')
    .summary('list or update the git repositories of a box')
    .description(
      'Lists the git repositories that the environment of a box has, with the states of their clones.',
    )
    .usage('<name> | update <name>')
    .helpCommand(false)
    .addHelpText(
      'after',
      '\nExamples:\n  box repos fig\n  box repos fig --watch\n  box repos update fig\n\n`box environments repo add` adds a repository to an environment.',
    )
  const ls = repos
    .command('ls', { isDefault: true })
    .alias('list')
    .summary('list the repositories (default)')
    .description('Lists the repositories of a box with their states: pending, cloning, ready or failed.')
    .argument('<name>', "the box's name or id")
  addListOptions(ls, 'the paths', BOX_REPOS.filters).action((name: string, options: ListOptions) =>
    runAction(async ({ client, signal }) => {
      const { id } = await client.findBox(name)
      const load = async () => {
        const response = await client.request<Repos>('GET', `/boxes/${id}/repos`)
        return { rows: response.repos, toJson: (shown: readonly BoxRepo[]) => ({ repos: shown }) }
      }
      return printList(BOX_REPOS, load, options, signal)
    }),
  )
  repos
    .command('update')
    .summary('fetch the latest commits')
    .description(
      'Updates the repositories of a running box in the background: fetches, and fast-forwards the branch. Clones what is missing. ' +
        'Local changes are not overwritten.',
    )
    .argument('<name>', "the box's name or id")
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .action((name: string, options: JsonOption & QuietOption) =>
      runAction(async ({ client }) => {
        const { id, hostname } = await client.findBox(name)
        const response = await client.request<Repos>('POST', `/boxes/${id}/repos/update`)
        if (options.json) return void printJson(response)
        const { length } = response.repos
        if (options.quiet) return
        if (length === 0)
          printStderr(
            `${hostname}: no repositories. They come from its environment: \`${boxCommand()} environments repo add ENVIRONMENT REPO\` adds one.`,
          )
        else
          printStderr(
            `${hostname}: updating ${formatCount(length, 'repository', 'repositories')}; \`${boxCommand()} repos ${hostname}\` shows the result`,
          )
      }),
    )
}

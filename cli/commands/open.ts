// box open: opens the page of the coordinator in a browser.
import type { Command } from 'commander'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import { findCoordinator } from '../connection/find-coordinator.ts'
import type { RunLocalAction } from '../connection/session.ts'
import { openUrl } from '../output/open-url.ts'
import { printJson } from '../output/print.ts'
import { DEFAULT_DATA_PARENT } from '../project-directory.ts'

export function addOpenCommand(program: Command, runLocalAction: RunLocalAction): void {
  program
    .command('open')
    .summary('open the page of the coordinator in a browser')
    .description(
      'Opens the page of the coordinator in a browser with xdg-open, and prints its URL. Without a display, and without ' +
        'xdg-open, only prints the URL.',
    )
    .addOption(createJsonOption('print the URL as JSON, and open nothing'))
    .addHelpText('after', '\nExamples:\n  box open\n  curl $(box open --json | jq -r .url)openapi.json')
    .action((options: JsonOption) => runLocalAction(() => open(options)))
}

async function open({ json }: JsonOption): Promise<undefined> {
  const { baseUrl } = findCoordinator(process.env, process.cwd(), DEFAULT_DATA_PARENT)
  const url = `${new URL(baseUrl).origin}/`
  if (json) printJson({ url })
  else await openUrl(url)
}

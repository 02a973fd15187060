// box version: shows the versions of the box command and of the coordinator.

import type { Command } from 'commander'
import { VERSION } from '../../shared/version.ts'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import { boxCommand } from '../command-name.ts'
import type { RunLocalAction } from '../connection/session.ts'
import { selectCoordinator } from '../local/select-coordinator.ts'
import { describeSkew, readServerInfo } from '../local/server-info.ts'
import { EXIT } from '../output/exit-codes.ts'
import { print, printJson, printMessage } from '../output/print.ts'
import { formatTable } from '../output/table.ts'

type Versions = {
  client: { version: string; node: string }
  /** null: no coordinator responds. */
  server: { version: string; apiVersion: string | null; url: string } | null
  /** null: the coordinator is not on this machine. */
  dataDirectory: string | null
}

export function addVersionCommand(program: Command, runLocalAction: RunLocalAction): void {
  program
    .command('version')
    .summary('show the versions of box and of the coordinator')
    .description(
      'Shows the version of the box command, and the version, API version and URL of the coordinator. Prints a warning ' +
        'when the two versions differ. `box --version` shows only the version of the box command.',
    )
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Exit codes: 0 when the coordinator responds, also when the versions differ; 3 when it does not respond.

Examples:
  box version
  box version --json | jq -r .server.version`,
    )
    .action((options: JsonOption) => runLocalAction((signal) => showVersions(options, signal)))
}

async function showVersions(options: JsonOption, signal: AbortSignal): Promise<number> {
  const versions = await readVersions(signal)
  const { server } = versions
  if (options.json) printJson(versions)
  else print(formatVersions(versions))
  if (server === null) printMessage(`no coordinator responds. See \`${boxCommand()} status\`.`)
  else if (server.version !== VERSION) printMessage(describeSkew(server.version))
  return server === null ? EXIT.unreachable : EXIT.ok
}

async function readVersions(signal: AbortSignal): Promise<Versions> {
  const selected = selectCoordinator(process.env, process.cwd())
  const url = selected.isLocal ? (selected.running?.url ?? null) : selected.url
  const info = url === null ? null : await readServerInfo(url, signal)
  return {
    client: { version: VERSION, node: process.version },
    server: info === null || url === null ? null : { ...info, url },
    dataDirectory: selected.isLocal ? selected.dataDir : null,
  }
}

function formatVersions({ client, server, dataDirectory }: Versions): string {
  const rows: [string, string][] = [['box', `${client.version} (Node ${client.node})`]]
  if (server !== null) {
    const api = server.apiVersion === null ? '' : ` (API ${server.apiVersion})`
    rows.push(['coordinator', `${server.version}${api}`], ['url', server.url])
  }
  if (dataDirectory !== null) rows.push(['data directory', dataDirectory])
  return formatTable(rows)
}

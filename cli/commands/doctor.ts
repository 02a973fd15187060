// box doctor: checks the installation, the machine and the coordinator, and prints what to do.

import type { Command } from 'commander'
import { formatCount } from '../../shared/format-count.ts'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import type { RunLocalAction } from '../connection/session.ts'
import type { Check } from '../doctor/check.ts'
import { listReplicas } from '../local/list-replicas.ts'
import { selectCoordinator } from '../local/select-coordinator.ts'
import { type Color, colorize } from '../output/colors.ts'
import { EXIT } from '../output/exit-codes.ts'
import { print, printJson, sanitize } from '../output/print.ts'

const COLORS: Record<Check['status'], Color> = { ok: 'green', warn: 'yellow', fail: 'red' }

export function addDoctorCommand(program: Command, runLocalAction: RunLocalAction): void {
  program
    .command('doctor')
    .summary('check the installation, and print what to do')
    .description(
      'Checks the program, the machine and the coordinator: the PATH, Node, packages, native parts, isolation, network, ' +
        'limits, engines for boxes with images, disk space, the listen address, the API key, failed boxes and replicas. For each warning and failure, box doctor prints what to do, ' +
        'and for each engine the line that adds it. ' +
        'The checks of the machine are omitted for a coordinator at BOXWOOD_URL.',
    )
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Exit codes: 0 without a failure, also with warnings; 1 with a failure.

Examples:
  box doctor
  box doctor --json | jq '.checks[] | select(.status != "ok")'`,
    )
    .action((options: JsonOption) => runLocalAction((signal) => runChecks(options, signal)))
}

async function runChecks({ json }: JsonOption, signal: AbortSignal): Promise<number> {
  const { checkNativeParts, checkProgram } = await import('../doctor/program-checks.ts')
  const { checkCoordinator } = await import('../doctor/coordinator-checks.ts')
  const { checkMachine } = await import('../doctor/machine-checks.ts')
  const { checkReplicas } = await import('../doctor/replica-checks.ts')
  const selected = selectCoordinator(process.env, process.cwd())
  const machineChecks = selected.isLocal
    ? [checkNativeParts(), ...(await checkMachine(selected.dataDir, selected.running, signal))]
    : []
  const replicas = selected.isLocal ? await listReplicas(selected.running, signal) : null
  const coordinatorChecks = [...(await checkCoordinator(selected, signal)), ...checkReplicas(replicas)]
  const checks = [...checkProgram(), ...machineChecks, ...coordinatorChecks]
  const failures = checks.filter(({ status }) => status === 'fail').length
  const warnings = checks.filter(({ status }) => status === 'warn').length
  if (json) printJson({ checks, failures, warnings })
  else {
    for (const line of formatChecks(checks)) print(line)
    print(`\n${formatCount(failures, 'failure')}, ${formatCount(warnings, 'warning')}.`)
  }
  return failures > 0 ? EXIT.failed : EXIT.ok
}

function formatChecks(checks: readonly Check[]): string[] {
  const width = Math.max(...checks.map(({ name }) => name.length))
  return checks.flatMap(({ name, status, message, advice }) => {
    const line = `${colorize(status.padEnd(4), COLORS[status])}  ${name.padEnd(width)}  ${sanitize(message)}`
    return advice === null ? [line] : [line, ...indent(advice, width + 8)]
  })
}

const indent = (text: string, width: number): string[] =>
  text.split('\n').map((line) => ' '.repeat(width) + sanitize(line))

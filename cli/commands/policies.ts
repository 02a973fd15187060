// box policies: shows and changes the policies of the workspace.
import type { Command } from 'commander'
import type { PolicyName, PolicyResponse } from '../../shared/api/policies.ts'
import {
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { loadMemberNames } from '../members/member-names.ts'
import { print, printJson, printStderr, sanitize } from '../output/print.ts'
import { formatTable } from '../output/table.ts'
import {
  findPolicyName,
  formatPolicyValue,
  POLICIES,
  POLICY_NAMES,
  parsePolicyValue,
} from '../policies/policy-values.ts'

export function addPoliciesCommand(program: Command, runAction: RunAction): void {
  const policies = program
    .command('policies')
    .summary('show or change the policies of the workspace')
    .description(
      'Shows the policies of the workspace. Owners change them, with a sign-in with `box login`. The policies of members ' +
        'limit members and contractors, not owners, and no API key without a user.',
    )
    .addOption(createJsonOption())
    // An option after `set` belongs to `set`.
    .enablePositionalOptions()
    .helpCommand(false)
    .addHelpText(
      'after',
      `
Examples:
  box policies
  box policies set auditRetentionDays 30
  box policies set quietHours mon-fri 22:00-07:00 sat,sun all-day Europe/Berlin
  box policies set quietHours off`,
    )
    .action((options: JsonOption) => runAction((session) => showPolicies(session, options)))
  policies
    .command('set')
    .summary('change a policy')
    .description(
      'Changes a policy. `off` removes it; `default` restores the value of a new workspace. For owners, with a sign-in.',
    )
    .argument('<policy>', 'the policy, such as memberBoxLimit or member-box-limit')
    .argument('<value...>', 'the value')
    .addOption(createQuietOption())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Policies:
${POLICY_NAMES.map((name) => `  ${name.padEnd(20)}  ${POLICIES[name].description}`).join('\n')}

Quiet hours are days with a period, days that are quiet for 24 hours, and a time zone. The default is the time zone of this
machine. When they start, all running boxes are suspended once, apart from enrolled machines and exempt boxes.`,
    )
    .action((policy: string, values: string[], options: JsonOption & QuietOption) =>
      runAction((session) => setPolicy(session, policy, values.join(' '), options)),
    )
}

async function showPolicies({ client }: Session, { json }: JsonOption): Promise<undefined> {
  const response = await client.request<PolicyResponse>('GET', '/workspace/policies')
  if (json) return void printJson(response)
  const { policy, updatedBy, updatedAt, quietHoursProblem } = response
  print(formatTable(POLICY_NAMES.map((name) => [name, formatPolicyValue(name, policy[name])])))
  if (quietHoursProblem) printStderr(sanitize(quietHoursProblem))
  if (updatedAt === null) return
  const getUserName = updatedBy === null ? String : await loadMemberNames(client)
  printStderr(sanitize(`Changed at ${updatedAt} by ${getUserName(updatedBy ?? 'an unknown user')}.`))
}

async function setPolicy(
  { client }: Session,
  typed: string,
  value: string,
  { json, quiet }: JsonOption & QuietOption,
): Promise<undefined> {
  const name: PolicyName = findPolicyName(typed)
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions()
  const request = { [name]: parsePolicyValue(name, value, timeZone) }
  const response = await client.requestBySession<PolicyResponse>('PATCH', '/workspace/policies', request)
  if (json) printJson(response)
  else if (!quiet) printStderr(`${name}: ${sanitize(formatPolicyValue(name, response.policy[name]))}`)
}

// Connects, verifies and disconnects AWS roles.
import type {
  AwsConnect,
  AwsRole,
  AwsRoleList,
  AwsRoleResponse,
  ConnectRoleRequest,
} from '../../shared/api/federation.ts'
import type { JsonOption, QuietOption } from '../arguments/options.ts'
import { boxCommand } from '../command-name.ts'
import { addHints } from '../connection/refusals.ts'
import type { Session } from '../connection/session.ts'
import { startBatch } from '../output/batch.ts'
import { canAsk, confirm } from '../output/confirm.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { formatAge } from '../output/format.ts'
import { print, printJson, printMessage, printStderr, sanitize } from '../output/print.ts'
import { findRole, loadRoles } from './roles.ts'
import { formatTrustPolicy, type PolicyFacts } from './trust-policy.ts'

type Output = JsonOption & QuietOption
export type ConnectOptions = Output & {
  /** The profile. */
  as?: string
  trustPolicy?: boolean
}

/** Returns the exit code. */
export async function connectRole(
  session: Session,
  roleArn: string | undefined,
  options: ConnectOptions,
): Promise<number> {
  if (options.trustPolicy) return printTrustPolicy(session, roleArn)
  return roleArn === undefined ? createLink(session, options) : connectByArn(session, roleArn, options)
}

async function printTrustPolicy({ client }: Session, roleArn: string | undefined): Promise<number> {
  print(formatTrustPolicy(requireIssuer(await loadRoles(client)), roleArn))
  return EXIT.ok
}

/** @throws CliError */
function requireIssuer({ issuer, missing, ...facts }: AwsRoleList): PolicyFacts {
  if (issuer !== null) return { ...facts, issuer }
  throw new CliError(
    EXIT.failed,
    `Boxes of this deployment cannot use AWS roles. ${missing.map(sanitize).join(' ')}`,
    { code: 'aws_federation_disabled' },
  )
}

async function connectByArn(
  { client }: Session,
  roleArn: string,
  { as: profile, json, quiet }: ConnectOptions,
): Promise<number> {
  const request: ConnectRoleRequest = { roleArn, ...(profile !== undefined && { profile }) }
  const { role } = await client.request<AwsRoleResponse>('POST', '/aws-roles', request)
  if (json) printJson(role)
  else if (!quiet)
    printStderr(
      `${sanitize(role.profile)}: connected to ${sanitize(role.roleArn)}. Boxes use it as \`aws --profile ${sanitize(role.profile)}\`.`,
    )
  if (role.verifyError === null) return EXIT.ok
  printMessage(`AWS does not let the workspace assume the role yet: ${sanitize(role.verifyError)}`)
  if (!json && !quiet) {
    printStderr('The trust policy of the role must be:')
    print(formatTrustPolicy(requireIssuer(await loadRoles(client)), role.roleArn))
    printStderr(
      `Change it, then: \`${boxCommand()} aws verify ${sanitize(role.profile)}\`. \`${boxCommand()} docs aws\` has all steps.`,
    )
  }
  return EXIT.failed
}

async function createLink(
  { client }: Session,
  { as: profile, json, quiet }: ConnectOptions,
): Promise<number> {
  const request = { ...(profile !== undefined && { profile }) }
  const response = client.request<AwsConnect>('POST', '/aws-connect', request)
  const link = await addHints(response, {
    aws_quick_connect_unavailable: `\`${boxCommand()} aws connect --trust-policy\` prints the trust policy of the role, \`${boxCommand()} docs aws\` has all steps.`,
  })
  if (json) printJson(link)
  else {
    if (!quiet)
      printStderr(
        `Open this link in a browser that is signed in to AWS. It works once, for ${formatAge(new Date().toISOString(), Date.parse(link.expiresAt))}, and connects the role that it creates (${link.id}):`,
      )
    print(sanitize(link.url))
  }
  return EXIT.ok
}

/** Returns the exit code. */
export async function verifyRoles({ client }: Session, typed: string[], options: Output): Promise<number> {
  const batch = startBatch(typed)
  const { roles } = await loadRoles(client)
  const failures = await batch.run([...new Set(typed)], async (text) => {
    const { id } = findRole(roles, text)
    const { role } = await client.request<AwsRoleResponse>('POST', `/aws-roles/${id}/verify`)
    printVerification(role, options)
    return role.verifyError
  })
  return failures.some((error) => error !== null) ? EXIT.failed : batch.exitCode
}

function printVerification(role: AwsRole, { json, quiet }: Output): void {
  const { profile, verifiedArn, verifyError } = role
  if (json) printJson(role)
  else if (verifyError !== null) printMessage(`${sanitize(profile)}: ${sanitize(verifyError)}`)
  else if (!quiet) printStderr(`${sanitize(profile)}: verified as ${sanitize(verifiedArn ?? '-')}`)
}

/** Returns the exit code. */
export async function disconnectRoles(
  { client, signal }: Session,
  typed: string[],
  { yes, json, quiet }: Output & { yes?: boolean },
): Promise<number> {
  const batch = startBatch(typed)
  const all = (await loadRoles(client)).roles
  const roles = await batch.run([...new Set(typed)], async (text) => {
    const { id, profile } = findRole(all, text)
    return { id, name: profile }
  })
  if (roles.length === 0) return batch.exitCode
  const names = roles.map(({ name }) => sanitize(name)).join(', ')
  if (
    !yes &&
    canAsk(json ?? false) &&
    !(await confirm(`Disconnect ${names}? Boxes cannot use these profiles any more.`, signal))
  ) {
    printMessage('nothing was disconnected.')
    return EXIT.failed
  }
  await batch.run(roles, async ({ id, name: profile }) => {
    await client.request('DELETE', `/aws-roles/${id}`)
    if (json) printJson({ id, profile, disconnected: true })
    else if (!quiet) printStderr(`${sanitize(profile)}: disconnected`)
  })
  return batch.exitCode
}

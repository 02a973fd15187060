// A coordinator with an identity issuer, an STS that reads its documents, and a clock that tests advance.
import type { Test } from 'tap'
import type { CloudCredentials } from '../../../shared/api/cloud-credentials.ts'
import { type CoordinatorOptions, startTestCoordinator } from '../../support/coordinator.ts'
import { startFakeSts } from '../../support/fake-sts.ts'
import { createUserKey } from '../../support/limited-key.ts'
import { createTrustPolicy } from '../../support/sts/trust-policy.ts'

export const ACCOUNT = '123456789012'
export const ISSUER = 'https://boxes.example.com/oidc'
export const AUDIENCE = 'sts.amazonaws.com'
export const HOUR_MS = 3_600_000
export const DAY_MS = 24 * HOUR_MS

export const toRoleArn = (name: string) => `arn:aws:iam::${ACCOUNT}:role/${name}`

export async function startFederation(t: Test, options: CoordinatorOptions = {}) {
  let offset = 0
  let frozenAt: number | null = null
  const now = () => frozenAt ?? Date.now() + offset
  let url = ''
  const sts = await startFakeSts(t, {
    issuer: ISSUER,
    now,
    readDocument: async (path) => (await fetch(`${url}/oidc${path}`)).json(),
  })
  const coordinator = await startTestCoordinator(t, {
    clock: { now },
    ...options,
    env: {
      BOXWOOD_PUBLIC_URL: 'https://boxes.example.com',
      BOXWOOD_OIDC_ISSUER: ISSUER,
      BOXWOOD_AWS_TEMPLATE_URL: 'https://templates.s3.amazonaws.com/boxwood-role.yaml',
      AWS_ENDPOINT_URL_STS: sts.url,
      AWS_REGION: 'eu-central-1',
      ...options.env,
    },
  })
  url = coordinator.url
  const { context, owner } = coordinator.instance
  const workspaceId = owner?.workspaceId ?? ''
  const [firstBox] = (await coordinator.api('GET', '/boxes')).json.boxes as { id: string; hostname: string }[]
  if (firstBox === undefined) throw new Error('the coordinator has no box')
  await coordinator.waitForState(firstBox.id, 'running')

  return {
    ...coordinator,
    ...{ sts, now, workspaceId, db: context.db, box: firstBox, credentials: context.cloudCredentials },
    advance(ms: number) {
      if (frozenAt === null) offset += ms
      else frozenAt += ms
    },
    /** From now on, only `advance` changes the time. Retries of the coordinator that wait do not become due. */
    freeze(at = now()) {
      frozenAt = at
    },
    /** Creates a role in AWS. @param workspace whose boxes it trusts */
    addRole(name: string, workspace = workspaceId): string {
      const trust = {
        issuer: ISSUER,
        account: ACCOUNT,
        audience: AUDIENCE,
        subject: `workspace:${workspace}:*`,
      }
      sts.roles.set(toRoleArn(name), createTrustPolicy(trust))
      return toRoleArn(name)
    },
    memberKey: await createUserKey(coordinator, 'member'),
    contractorKey: await createUserKey(coordinator, 'contractor'),
    /** The last credentials that a box has received. */
    async readCredentials(boxId: string): Promise<CloudCredentials | undefined> {
      await context.cloudCredentials.whenIdle()
      return coordinator.infra.cloudCredentials.get(boxId)?.at(-1)
    },
    readEvents: async (kind: string) =>
      (
        await context.db.selectFrom('audit_log').selectAll().where('kind', '=', kind).orderBy('no').execute()
      ).map((event) => ({ ...event, detail: JSON.parse(event.detail ?? '{}') })),
  }
}

export type Federation = Awaited<ReturnType<typeof startFederation>>

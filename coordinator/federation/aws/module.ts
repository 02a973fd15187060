// AWS roles that boxes assume with identity tokens, without a stored key (spec §4.6).

import type { Tunnels } from '../../agents/tunnel/types.ts'
import { unlessAborted } from '../../base/unless-aborted.ts'
import { subscribeToVariableChanges } from '../../boxes/variable-changes.ts'
import type { Trx } from '../../db/transaction.ts'
import type { EnvironmentVersions } from '../../environments/types.ts'
import { subscribeToAccessChanges } from '../../http/access-changes.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import type { HttpSettings } from '../../http/settings.ts'
import type { ConfirmActor } from '../../identity/confirm-actor.ts'
import type { Issuer } from '../issuer/issuer.ts'
import type { FederationSettings } from '../settings.ts'
import { getAvailability } from './availability.ts'
import { recordCredentialChange, subscribeToCredentialChanges } from './credential-changes.ts'
import { CredentialSender } from './credential-sender.ts'
import { createCredentialLoader } from './load-credentials.ts'
import { createRoleLinks } from './role-links.ts'
import { hasRoles } from './role-store.ts'
import { createAwsRoles, createVerifyRole } from './roles.ts'
import { awsRoleRoutes, roleLinkRoutes } from './routes.ts'
import { createAssumeRole, getStsEndpoint } from './sts.ts'

export type AwsModuleContext = ModuleBase & {
  config: FederationSettings & Pick<HttpSettings, 'publicUrl'>
  issuer: Issuer
  tunnels: Tunnels
  boxEnvironments: EnvironmentVersions
  confirmActor: ConfirmActor
}

export function awsModule(context: AwsModuleContext) {
  const { config, db, clock, log, issuer, tunnels, boxEnvironments } = context
  const { confirmActor } = context
  const loader = createCredentialLoader({ db, issuer, environments: boxEnvironments })
  const sender = new CredentialSender({ loader, tunnels, clock, log, isEnabled: issuer.url !== null })
  const onGap = () => sender.onMissedChanges()
  const unsubscribe = [
    subscribeToVariableChanges(db, (boxId) => sender.onEnvironmentChange(boxId), { onGap }),
    subscribeToCredentialChanges(db, (change) => sender.onChange(change), { onGap }),
    subscribeToAccessChanges(
      db,
      ({ workspaceId, credentialId }) => {
        if (credentialId === undefined) sender.onAccessChange(workspaceId)
      },
      { onGap },
    ),
  ]
  const assumeRole = createAssumeRole({ endpoint: getStsEndpoint(config) })
  const common = {
    ...{ db, clock, issuer, confirmActor },
    availability: getAvailability(config, issuer.url),
    verifyRole: createVerifyRole(issuer, assumeRole),
  }
  const roles = createAwsRoles(common)
  const links = createRoleLinks({ ...common, region: config.awsRegion })
  return {
    services: { cloudCredentials: sender },
    routes: withTag('Cloud roles', [...awsRoleRoutes(roles), ...roleLinkRoutes(links)]),
    schedules: { pruners: { aws_connects: links.prune } },
    workspaceTables: [
      { table: 'aws_connects', key: null, isCredential: true },
      { table: 'aws_roles', key: null },
    ],
    /** Roles of a time with an issuer are removed from the boxes. */
    async prepare() {
      if (issuer.url !== null || (await hasRoles(db))) sender.start()
    },
    /** The first command of a box can use the roles. */
    prepareBox: (boxId: string, signal: AbortSignal) => unlessAborted(sender.prepare(boxId), signal),
    async restrictBox(trx: Trx, boxId: string) {
      recordCredentialChange(trx, { boxId })
    },
    close: {
      name: 'stop sending cloud credentials',
      async run() {
        for (const stop of unsubscribe) stop()
        await sender.close()
      },
    },
  } satisfies Module
}

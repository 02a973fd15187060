// The identity issuer of the deployment, whose tokens clouds exchange for credentials (spec §4.6).

import type { Keyring } from '../../base/sealing/keyring.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import type { FederationSettings } from '../settings.ts'
import { getIssuerPath } from './documents.ts'
import { createIssuer, type Issuer } from './issuer.ts'
import { createRotateKeys } from './rotate-keys.ts'
import { documentRoutes, federationRoutes, rotationRoutes } from './routes.ts'
import { createSigningKeys } from './signing-keys.ts'

export type IssuerModuleContext = ModuleBase & {
  config: FederationSettings
  keyring: Pick<Keyring, 'seal' | 'open'>
  urls: { public: string }
}

export function issuerModule({ config, db, clock, keyring, urls }: IssuerModuleContext) {
  const { oidcIssuer: url } = config
  const keys = createSigningKeys({ db, clock, keyring })
  const issuer: Issuer = createIssuer({ url, keys, clock })
  const rotateKeys = createRotateKeys({ keys, isEnabled: url !== null })
  const path = url === null ? null : getIssuerPath(url, urls.public)
  return {
    services: { issuer },
    routes: [
      ...withTag('Cloud roles', federationRoutes(issuer)),
      ...withTag('Operator', rotationRoutes(rotateKeys)),
    ],
    publicRoutes: path === null ? [] : documentRoutes(issuer, path),
    // Without an issuer no key is created.
    schedules: url === null ? {} : { pruners: { federation_keys: keys.rotateIfDue } },
    sealedColumns: [{ table: 'federation_keys', id: 'id', value: 'private_key', isOfDeployment: true }],
  } satisfies Module
}

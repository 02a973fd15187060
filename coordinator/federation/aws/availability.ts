// Whether this deployment has what federation and its quick connect need, and what the operator has to do otherwise.
import { CONTROL_PREFIX } from '../../http/prefixes.ts'

export type Availability = {
  issuer: string | null
  /** Sentences for the operator; empty: federation is enabled. */
  missing: string[]
  /** What the stack of a quick connect needs; null: there is no quick connect. */
  quickConnect: { templateUrl: string; callbackUrl: string } | null
}

export function getAvailability(
  config: { awsTemplateUrl: string | null; publicUrl: string | null },
  issuer: string | null,
): Availability {
  const { awsTemplateUrl: templateUrl, publicUrl } = config
  if (issuer === null)
    return {
      issuer,
      quickConnect: null,
      missing: [
        'Set BOXWOOD_OIDC_ISSUER to a public https URL at which AWS can read the documents of the issuer. `box docs aws` describes it.',
      ],
    }
  // A function in AWS sends the secret of the link there.
  const isReachable = publicUrl?.startsWith('https://') ?? false
  const quickConnect =
    templateUrl !== null && isReachable
      ? { templateUrl, callbackUrl: `${publicUrl}${CONTROL_PREFIX}/aws-connect/callback` }
      : null
  return { issuer, missing: [], quickConnect }
}

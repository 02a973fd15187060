// The requests that need an admission, with the fields that the decision uses.
import type { PortAudience } from '../../shared/api/port-shares.ts'
import type { Region, Tier } from '../../shared/tiers.ts'
import type { BoxRow } from '../db/schema.ts'

/** The names of the image of the new box, any of which a policy may allow. Empty: the box has no image. */
type ImageNames = { imageNames: readonly string[] }

/** `box` is the row before the change. For a fork and a snapshot, `box` is the source. */
export type AdmissionRequest =
  /** `autoPauseMin` and `restricted`: undefined when the request does not name them. */
  | ({
      action: 'create'
      tier: Tier
      autoPauseMin: number | null | undefined
      restricted: boolean | undefined
    } & ImageNames)
  /** The tier of a machine is null when its size is not known yet, because the request creates the token. */
  | { action: 'enroll'; tier: Tier | null }
  | { action: 'wake'; box: BoxRow }
  | { action: 'resize'; box: BoxRow; tier: Tier }
  | { action: 'move'; box: BoxRow; region: Region }
  | ({ action: 'fork'; box: BoxRow; tier: Tier } & ImageNames)
  | ({ action: 'restore'; tier: Tier } & ImageNames)
  /** autoPauseMin: undefined when the request does not change it. */
  | { action: 'patch'; box: BoxRow; autoPauseMin: number | null | undefined }
  /** The actor of the facts is the member who gets the box. */
  | { action: 'give'; box: BoxRow; receiverName: string }
  | { action: 'snapshot'; box: BoxRow }
  | { action: 'template'; box: BoxRow }
  /** A download of the image for later boxes. */
  | ({ action: 'pull' } & ImageNames)
  | { action: 'share'; access: PortAudience }

/** What a request asks: the tier of a new box may be left to the service. */
export type AdmissionQuestion =
  | Exclude<AdmissionRequest, { action: 'create' }>
  | (Omit<Extract<AdmissionRequest, { action: 'create' }>, 'tier'> & { tier: Tier | undefined })

export type AdmissionAction = AdmissionRequest['action']

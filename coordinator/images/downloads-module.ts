// The downloads of images. A module before those that create boxes.

import type { Module, ModuleBase } from '../http/module.ts'
import type { Providers } from '../providers/regions.ts'
import { createImageDownloads, type ImageDownloads } from './downloads.ts'
import type { ImageSettings } from './settings.ts'

export function imageDownloadsModule({
  config,
  db,
  clock,
  log,
  providers,
}: ModuleBase & { config: ImageSettings; providers: Providers }) {
  const limits = { count: config.imageLimit, gib: config.imageGib }
  const imageDownloads: ImageDownloads = createImageDownloads({ db, clock, log, providers, limits })
  return {
    services: { imageDownloads },
    schedules: { pruners: { image_uses: imageDownloads.recordUses } },
  } satisfies Module
}

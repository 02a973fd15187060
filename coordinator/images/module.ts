// The regions and their images.

import type { Admit } from '../admission/admit.ts'
import type { BoxSettings } from '../boxes/settings.ts'
import type { Module, ModuleBase } from '../http/module.ts'
import { withTag } from '../http/route.ts'
import type { Providers } from '../providers/regions.ts'
import type { ImageDownloads } from './downloads.ts'
import { listRegions } from './regions.ts'
import { imageRoutes } from './routes.ts'
import { createImageService } from './service.ts'

export type ImagesModuleContext = ModuleBase & {
  config: Pick<BoxSettings, 'freezeMinutes'>
  providers: Providers
  admit: Admit
  imageDownloads: ImageDownloads
}

export function imagesModule(context: ImagesModuleContext): Module {
  const { config, db, clock, providers, admit, imageDownloads: downloads } = context
  const closing = new AbortController()
  const images = createImageService({ db, clock, providers, admit, downloads })
  const freezesBoxes = config.freezeMinutes > 0
  return {
    routes: withTag(
      'Images',
      imageRoutes({
        listRegions: () => listRegions(providers, { freezesBoxes }),
        images,
        closing: closing.signal,
      }),
    ),
    beginStop: () => closing.abort(),
  }
}

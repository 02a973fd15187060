// Creates the admission of requests with billing off.
import { type Admit, createAdmit } from '../../coordinator/admission/admit.ts'
import { countLiveBoxes } from '../../coordinator/boxes/lookups.ts'
import { type Clock, systemClock } from '../../shared/clock.ts'

export const createTestAdmit = (clock: Clock = systemClock): Admit => createAdmit({ clock, countLiveBoxes })

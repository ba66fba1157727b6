// English-like text from a seed. Neither random bytes nor one sentence again and again: what a store or a compressor makes
// of it is close to what it makes of a conversation. Frequent words come often, rare ones seldom, as in a language.

const words = `the of and to a in that it is was for on with as be at by this had not are but from or have an they which
one you were her all she there would their we him been has when who will more no if out so said what up its about into
than them can only other new some could time these two may then do first any my now such like our over man me even most
made after also did many before must through back years where much your way well down should because each just those
people too how little state good very make world still own see men work long here get both between life being under
never day same another know while last might us great old year off come since against go came right used take three
small large server request memory answer message number system order question branch session history record change
result paper review section figure table column query index cache thread process engine model agent prompt token stream
budget deadline customer invoice payment refund account address shipment warehouse delivery contract policy meeting
schedule calendar reminder summary report analysis forecast revenue margin growth quarter region market product feature
release version deploy rollback incident outage latency throughput capacity replica backup restore migration schema
library package module function argument variable constant interface promise callback iterator generator exception
warning debug trace metric dashboard alert threshold baseline experiment hypothesis sample median variance percentile
river mountain harbour bridge station railway village garden kitchen window corridor staircase library museum theatre
morning evening winter summer autumn spring weather thunder lantern candle mirror carpet blanket pillow hammer needle
doctor lawyer teacher student engineer painter musician farmer sailor soldier merchant neighbour stranger daughter
brother cousin husband widow captain colonel secretary director manager assistant volunteer candidate applicant
quiet careful sudden narrow bright gentle bitter hollow ancient modern honest clever stubborn generous curious anxious
patient reckless fragile sturdy obvious subtle crucial trivial awkward graceful relevant redundant concise verbose
walk carry follow gather measure compare explain describe suggest imagine believe remember forget consider prefer
improve reduce increase replace remove append commit revert restore verify publish subscribe allocate release inspect
travel arrive depart wander borrow lend purchase deliver collect arrange prepare repair assemble translate summarise
probably perhaps certainly rarely often usually finally carefully quickly slowly nearly almost exactly roughly together
Monday Tuesday Wednesday Thursday Friday London Berlin Paris Lisbon Vienna Oslo Dublin Madrid Prague Warsaw Athens
twelve fifteen twenty thirty hundred thousand million percent metre kilometre kilogram litre minute second hour week`
  .split(/\s+/)
  .filter(Boolean);

const endings = ["", "", "", "", "s", "s", "ed", "ing", "er", "ly"];

/** A generator of numbers in [0, 1) that gives the same ones for the same seed (mulberry32). */
export function seeded(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Text of about so many characters, in sentences. */
export function prose(random, length) {
  const text = [];
  let size = 0;
  for (let left = 0, start = true; size < length; left--) {
    if (left <= 0) {
      left = 6 + Math.floor(random() * 14);
      start = true;
    }
    const word = pick(random);
    const shown = start ? word[0].toUpperCase() + word.slice(1) : word;
    const stop = left === 1 ? (random() < 0.1 ? "?" : ".") : random() < 0.08 ? "," : "";
    text.push(shown + stop);
    size += shown.length + stop.length + 1;
    start = false;
  }
  return text.join(" ").slice(0, length);
}

function pick(random) {
  if (random() < 0.03) return String(Math.floor(random() * 10_000));
  const rank = Math.floor(words.length * random() ** 2.2);
  const word = words[rank];
  return rank < 150 ? word : word + endings[Math.floor(random() * endings.length)];
}

import { SaxesParser, type SaxesTagNS } from 'saxes';
import { CurrencyRatesError } from './errors.ts';

const ENVELOPE = 'http://www.gesmes.org/xml/2002-08-01';
const VOCABULARY = 'http://www.ecb.int/vocabulary/2002-08-01/eurofxref';

const DAY = /^\d{4}-\d{2}-\d{2}$/;
/** The euro has rates from then on. */
const FIRST_DAY = '1999-01-01';
const CURRENCY = /^[A-Z]{3}$/;
/** A decimal above zero. It stays text, so that no digit is lost or made up. */
const RATE = /^(?=.*[1-9])(?:0|[1-9]\d{0,11})(?:\.\d{1,12})?$/;

/** The documented form has four levels and two attributes: more is no document of the bank, and would only take memory. */
const MAX_DEPTH = 8;
const MAX_ATTRIBUTES = 8;

/** What one euro is worth on a day, by currency. */
export type DayRates = Readonly<{ day: string; rates: Readonly<Record<string, string>> }>;

/** Where an element stands. `beside`: in one that says who sends the document. */
type Place = 'envelope' | 'days' | 'day' | 'rate' | 'beside';

const unexpected = (what: string) => new CurrencyRatesError('unexpected', `The document of rates ${what}.`);

function isDay(text: string): boolean {
  if (!DAY.test(text) || text < FIRST_DAY) return false;
  const time = Date.parse(text);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}

function gatherer(lastDay: string) {
  const days = new Map<string, Map<string, string>>();
  const places: Place[] = [];
  let current = new Map<string, string>();

  function beginDay(day: string): void {
    if (!isDay(day)) throw unexpected('names a day that does not exist');
    if (day > lastDay) throw unexpected('has rates of a day that is still to come');
    current = days.get(day) ?? new Map();
    days.set(day, current);
  }

  function add(currency: string, rate: string): void {
    if (!CURRENCY.test(currency) || currency === 'EUR') throw unexpected('names what is no currency beside the euro');
    if (!RATE.test(rate)) throw unexpected('has a rate that is no decimal above zero');
    const known = current.get(currency);
    if (known !== undefined && known !== rate) throw unexpected('has two rates of a currency for one day');
    current.set(currency, rate);
  }

  function placeOf({ local, uri, attributes }: SaxesTagNS): Place {
    const above = places.at(-1);
    if (above === undefined) {
      if (local === 'Envelope' && uri === ENVELOPE) return 'envelope';
      throw unexpected('is another document');
    }
    if (local !== 'Cube' || uri !== VOCABULARY) return 'beside';
    const of = (name: string) => attributes[name]?.value ?? '';
    if (above === 'envelope') return 'days';
    if (above === 'days') {
      beginDay(of('time'));
      return 'day';
    }
    if (above === 'day') {
      add(of('currency'), of('rate'));
      return 'rate';
    }
    throw unexpected('is not built as it is documented');
  }

  return {
    open(tag: SaxesTagNS): void {
      if (places.length >= MAX_DEPTH) throw unexpected('is nested too deep');
      places.push(placeOf(tag));
    },
    close: () => void places.pop(),
    /** Newest first. A currency that is not quoted on a day is not there. */
    days(): readonly DayRates[] {
      const found = [...days].filter(([, rates]) => rates.size > 0);
      if (found.length === 0) throw unexpected('has no rates');
      return found
        .toSorted(([one], [other]) => (one < other ? 1 : -1))
        .map(([day, rates]) => ({ day, rates: Object.fromEntries(rates) }));
    },
  };
}

/**
 * Reads a document of reference rates as its bytes come: `Envelope > Cube > Cube[time] > Cube[currency][rate]`. Days may come in any
 * order, and twice. Document type declarations are refused, so that no entity is ever expanded.
 * @param lastDay the last day that may have rates
 * @throws CurrencyRatesError for what is cut off, no XML or of another form; and what `bytes` throws
 */
export async function readRates(bytes: AsyncIterable<Uint8Array>, lastDay: string): Promise<readonly DayRates[]> {
  const parser = new SaxesParser({ xmlns: true, position: false });
  const gathered = gatherer(lastDay);
  let attributes = 0;
  parser.on('doctype', () => {
    throw unexpected('declares a document type');
  });
  parser.on('opentagstart', () => {
    attributes = 0;
  });
  parser.on('attribute', () => {
    attributes += 1;
    if (attributes > MAX_ATTRIBUTES) throw unexpected('has an element with too many attributes');
  });
  parser.on('opentag', gathered.open);
  parser.on('closetag', gathered.close);
  const parse = (write: () => unknown) => {
    try {
      write();
    } catch (error) {
      if (error instanceof CurrencyRatesError) throw error;
      const message = 'The document of rates is cut off, or is no XML in UTF-8.';
      throw new CurrencyRatesError('malformed', message, { cause: error });
    }
  };
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for await (const chunk of bytes) parse(() => parser.write(decoder.decode(chunk, { stream: true })));
  parse(() => parser.write(decoder.decode()).close());
  return gathered.days();
}

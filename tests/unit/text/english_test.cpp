#include "text/cleaner.h"

#include <gtest/gtest.h>

namespace myxtts {
namespace {

struct Case {
  const char* written;
  const char* spoken;
};

void expect_spoken(std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    const std::string spoken = clean_text(c.written, "en-us");
    EXPECT_EQ(spoken, c.spoken) << "written: " << c.written;
    EXPECT_EQ(clean_text(spoken, "en-us"), spoken) << "cleaned twice: " << c.written;
  }
}

TEST(English, spelling_is_made_one) {
  expect_spoken({
      {"  Hello,\t World!\n", "hello, world!"},
      {"ÉCOLE Žižek Ÿ Łódź", "école žižek ÿ łódź"},
      {"It’s ‘fine’", "it's 'fine'"},
      {"“Quoted” «text»", "\"quoted\" \"text\""},
      {"one—two – three", "one - two - three"},
      {"one--two", "one - two"},
      {"well‑known", "well-known"},
      {"wait…", "wait..."},
      {"soft\u00ADhyphen\uFEFF \u200Eand\u00A0space", "softhyphen and space"},
      {"H\u0331", "\u1E96"},
      {"", ""},
      {" \t ", ""},
  });
}

TEST(English, abbreviations_are_words) {
  expect_spoken({
      {"Mr. Smith and Mrs. Jones", "mister smith and missus jones"},
      {"Mr Smith", "mister smith"},
      {"Ms. Lee, Dr. Who", "miss lee, doctor who"},
      {"St. John lives on Main St.", "saint john lives on main street."},
      {"Smith & Co. Ltd.", "smith and company limited."},
      {"King Jr. and Sr. of Ft. Worth", "king junior and senior of fort worth"},
      {"Maj. Gen. Rev. Lt. Hon. Sgt. Capt. Col. X",
       "major general reverend lieutenant honorable sergeant captain colonel x"},
      {"Drs. A, Esq. B", "doctors a, esquire b"},
      {"cats vs. dogs, etc.", "cats versus dogs, et cetera."},
      {"fruit, e.g. apples, i.e. food", "fruit, for example apples, that is food"},
      {"No. 5 is alive", "number five is alive"},
      {"I said no. Really", "i said no. really"},
      {"#1 fan", "number one fan"},
      {"R&D", "r and d"},
      {"cost. most. gen", "cost. most. gen"},
      {"a 6 ft. wall", "a six feet wall"},
  });
}

TEST(English, numbers_are_words) {
  expect_spoken({
      {"0 1 13 20 21 100", "zero one thirteen twenty twenty-one one hundred"},
      {"101, 999", "one hundred one, nine hundred ninety-nine"},
      {"1,000 and 12,345", "one thousand and twelve thousand three hundred forty-five"},
      {"1000000", "one million"},
      {"1000000000000000000", "one quintillion"},
      {"1000000000000000001",
       "one zero zero zero zero zero zero zero zero zero zero zero zero zero zero zero zero zero one"},
      {"999999999999999999",
       "nine hundred ninety-nine quadrillion nine hundred ninety-nine trillion nine hundred ninety-nine billion "
       "nine hundred ninety-nine million nine hundred ninety-nine thousand nine hundred ninety-nine"},
      {"12345678901234567890",
       "one two three four five six seven eight nine zero one two three four five six seven eight nine zero"},
      {"007", "zero zero seven"},
      {"3.14", "three point one four"},
      {"0.05", "zero point zero five"},
      {".5", "point five"},
      {"version 1.2.3", "version one point two point three"},
      {"-5 degrees", "minus five degrees"},
      {"−2.5", "minus two point five"},
      {"covid-19", "covid-nineteen"},
      {"pages 3-5", "pages three - five"},
      {"pages 3–5", "pages three - five"},
      {"5kg in b2b", "five kg in b two b"},
      {"It cost 3.", "it cost three."},
      {"1,2,3", "one,two,three"},
      {"50% of 5 %", "fifty percent of five percent"},
      {"2000%", "two thousand percent"},
  });
}

TEST(English, ordinals_and_fractions_are_words) {
  expect_spoken({
      {"1st 2nd 3rd 4th", "first second third fourth"},
      {"5th 8th 9th 12th", "fifth eighth ninth twelfth"},
      {"20th, 22nd, 103rd", "twentieth, twenty-second, one hundred third"},
      {"1,000th", "one thousandth"},
      {"1st,2nd", "first,second"},
      {"1/2 cup, 1/4 or 3/4", "one half cup, one quarter or three quarters"},
      {"½ ¼ ¾", "one half one quarter three quarters"},
      {"2½ and 2 1/2", "two and one half and two and one half"},
  });
}

TEST(English, money_is_words) {
  expect_spoken({
      {"$1", "one dollar"},
      {"$1,200.50", "one thousand two hundred dollars, fifty cents"},
      {"$2.5 million", "two point five million dollars"},
      {"$0.99", "ninety-nine cents"},
      {"$5.00", "five dollars"},
      {"$1.01", "one dollar, one cent"},
      {"£3.01", "three pounds, one penny"},
      {"£20", "twenty pounds"},
      {"€1 or 5 €", "one euro or five euros"},
      {"-$5", "minus five dollars"},
      {"$10k, $3bn", "ten thousand dollars, three billion dollars"},
      {"$1995", "one thousand nine hundred ninety-five dollars"},
      {"a $ sign", "a $ sign"},
  });
}

TEST(English, years_and_dates_are_words) {
  expect_spoken({
      {"1995", "nineteen ninety-five"},
      {"1900", "nineteen hundred"},
      {"1905", "nineteen oh five"},
      {"1066 and 1100", "one thousand sixty-six and eleven hundred"},
      {"2000 2005", "two thousand two thousand five"},
      {"2010 2024", "twenty ten twenty twenty-four"},
      {"the 1990s", "the nineteen nineties"},
      {"1900s, 2000s, 2010s", "nineteen hundreds, two thousands, twenty tens"},
      {"the '90s and 1980's", "the 'nineties and nineteen eighties"},
      {"March 3, 1995", "march third, nineteen ninety-five"},
      {"March 3rd, 1995.", "march third, nineteen ninety-five."},
      {"On Jan. 21 we", "on january twenty-first we"},
      {"Sept. 2001", "september two thousand one"},
      {"3 March 1995", "the third of march nineteen ninety-five"},
      {"the 4 July", "the fourth of july"},
      {"these 3 may come", "these three may come"},
      {"1995-03-04", "march fourth, nineteen ninety-five"},
      {"3/4/1995", "march fourth, nineteen ninety-five"},
      {"31/12/1999", "december thirty-first, nineteen ninety-nine"},
      {"1995-13-04", "nineteen ninety-five - thirteen - zero four"},
  });
}

TEST(English, times_are_words) {
  expect_spoken({
      {"3:45", "three forty-five"},
      {"10:05 pm", "ten oh five p m"},
      {"7:00", "seven o'clock"},
      {"7:00 a.m. sharp", "seven a m sharp"},
      {"until 9 p.m.", "until nine p m."},
      {"3pm", "three p m"},
      {"12:30:15", "twelve thirty and fifteen seconds"},
      {"ratio 3:75", "ratio three:seventy-five"},
  });
}

TEST(English, every_tag_of_english_counts) {
  for (const char* language : {"en", "en-us", "en-GB", "EN", "en_AU"}) EXPECT_EQ(clean_text("A 5", language), "a five");
  for (const char* language : {"de", "enm", "", "xx"}) EXPECT_EQ(clean_text(" A  5 ", language), "A 5");
}

}  // namespace
}  // namespace myxtts

#include "demo/words.h"

#include "base/error.h"

#include <sstream>

namespace myxtts {
namespace {

constexpr const char* english =
    "apple river window garden morning silver quiet little orange paper yellow mountain winter summer house "
    "water bridge letter music kitchen friend valley market forest candle mirror pocket basket travel listen "
    "answer question number simple gentle bright heavy empty narrow golden purple frozen wooden broken hidden "
    "walks speaks writes follows carries watches opens closes counts builds paints sings waits moves turns "
    "under over beside behind before after between around never always often again today slowly softly quickly "
    "the a and but with from into about every some many few this that his her our their one two three five six "
    "seven eight nine ten village teacher doctor sailor farmer painter writer child mother father sister brother "
    "clock table chair lamp bread honey juice cloud storm star moon fox horse zebra lion queen king voice word";

// clang-format off
constexpr const char* persian =
    "سلام آب باد خاک آتش کتاب خانه پنجره باغ صبح شب روز ماه خورشید ستاره کوه دریا رود جنگل درخت گل برگ میوه سیب "
    "انار نان نمک قند چای شیر عسل پدر مادر برادر خواهر دوست معلم شاعر نویسنده نقاش کودک مرد زن شهر روستا بازار "
    "خیابان کوچه پل مدرسه دانشگاه کلاس قلم دفتر نامه پاسخ پرسش صدا حرف واژه جمله زبان فارسی ایران تهران شیراز "
    "اصفهان تبریز بزرگ کوچک زیبا روشن تاریک آرام تند سبز آبی زرد سفید سیاه سرخ می‌رود "
    "می‌آید "
    "می‌گوید "
    "می‌نویسد "
    "می‌خواند می‌بیند می‌شنود می‌سازد نمی‌داند خانه‌ها کتاب‌ها درخت‌ها ستاره‌ها از به با در بر "
    "تا "
    "که "
    "و اما هر "
    "این آن یک دو سه چهار پنج شش هفت هشت نه ده امروز دیروز فردا همیشه هرگز گاهی ژاله غزال ظهر ضرب صابون طلا ذهن "
    "ثانیه حوض عصر فصل قصه گنج لحظه چراغ پروانه مسئله";
// clang-format on

const std::vector<std::string>& words_of(const std::string& language) {
  const auto split = [](const char* list) {
    std::istringstream stream(list);
    return std::vector<std::string>(std::istream_iterator<std::string>(stream), {});
  };
  static const std::vector<std::string> en = split(english), fa = split(persian);
  if (language == "en") return en;
  if (language == "fa") return fa;
  reject_input("demo-data", "there is no word list for '{}'", language,
               way_out("there are {}", fmt::join(demo_languages(), ", ")));
}

}  // namespace

std::vector<std::string> demo_languages() { return {"en", "fa"}; }

std::string demo_sentence(const std::string& language, Random& random) {
  const std::vector<std::string>& words = words_of(language);
  const uint64_t count = 3 + random.below(7);
  const uint64_t comma_after = random.below(2 * count);
  std::string sentence;
  for (uint64_t i = 0; i < count; ++i) {
    sentence += words[random.below(words.size())];
    if (i + 1 == count) break;
    if (i == comma_after) sentence += language == "fa" ? "،" : ",";
    sentence += ' ';
  }
  if (language == "en") sentence[0] = static_cast<char>(std::toupper(sentence[0]));
  return sentence + ".";
}

}  // namespace myxtts
